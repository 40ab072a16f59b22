//! How far a reflector has come, and what that is worth.

use crate::object::ResourceVersion;

/// How far a reflector has come in the server's history, and what it may ask for next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Position {
    /// Nothing is known; whatever the server has at hand will do.
    Start,
    /// Everything up to this version has been passed on.
    At(ResourceVersion),
    /// The same, but the server may have been restored to an older state since: it is to be asked.
    Doubtful(ResourceVersion),
    /// The same, but the server does not answer for this version any more, or not yet.
    Unavailable(ResourceVersion),
    /// The server was restored to an older state: only its most recent one will do, and nothing known is reused.
    Restored,
}

impl Position {
    /// The version after the last change that was passed on.
    pub(super) fn version(&self) -> Option<&ResourceVersion> {
        match self {
            Self::At(version) | Self::Doubtful(version) | Self::Unavailable(version) => Some(version),
            Self::Start | Self::Restored => None,
        }
    }

    /// Which version an initial state must at least be of; `None` for the most recent one.
    pub(super) fn at_least(&self) -> Option<ResourceVersion> {
        match self {
            Self::Start => Some(ResourceVersion::from("0")),
            Self::At(version) | Self::Doubtful(version) => Some(version.clone()),
            Self::Unavailable(_) | Self::Restored => None,
        }
    }

    /// The server may be another one than it was.
    pub(super) fn doubt(&mut self) {
        if let Self::At(version) = self {
            *self = Self::Doubtful(version.clone());
        }
    }

    /// The version is not to be asked for again.
    pub(super) fn give_up(&mut self) {
        if let Self::At(version) | Self::Doubtful(version) = self {
            *self = Self::Unavailable(version.clone());
        } else if *self == Self::Start {
            *self = Self::Restored;
        }
    }

    /// True if a version can be gone on from: it is there, and not older than one already seen, or of another kind.
    pub(super) fn can_reach(&self, version: &ResourceVersion) -> bool {
        !version.as_str().is_empty() && self.version().is_none_or(|last| version.is_at_least(last) || !last.is_number())
    }

    /// True if no server says this version after what it has said so far, unless it was restored to an older state.
    pub(super) fn is_contradicted_by(&self, version: Option<&ResourceVersion>) -> bool {
        version.zip(self.version()).is_some_and(|(now, last)| now.is_older_than(last))
    }
}
