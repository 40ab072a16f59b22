//! How far a reflector has come in the history of the API server.

use crate::object::ResourceVersion;

/// How far a reflector has come, and which version it may request next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Position {
    /// No version is known; any state of the API server will do.
    Start,
    /// Every change up to this version was passed to the sink.
    At(ResourceVersion),
    /// As `At`, but the API server may have been restored since then: the reflector must check that first.
    Doubtful(ResourceVersion),
    /// As `At`, but this version has expired, or the API server has not reached it yet.
    Unavailable(ResourceVersion),
    /// The API server was restored to an older state: the reflector needs the most recent state, and reuses no known
    /// object.
    Restored,
}

impl Position {
    /// Returns the version of the last change that was passed to the sink.
    pub(super) fn version(&self) -> Option<&ResourceVersion> {
        match self {
            Self::At(version) | Self::Doubtful(version) | Self::Unavailable(version) => Some(version),
            Self::Start | Self::Restored => None,
        }
    }

    /// Returns the version that an initial state must at least have; `None` for the most recent one.
    pub(super) fn at_least(&self) -> Option<ResourceVersion> {
        match self {
            Self::Start => Some(ResourceVersion::from("0")),
            Self::At(version) | Self::Doubtful(version) => Some(version.clone()),
            Self::Unavailable(_) | Self::Restored => None,
        }
    }

    /// Marks the position as doubtful: the API server may have been restored.
    pub(super) fn doubt(&mut self) {
        if let Self::At(version) = self {
            *self = Self::Doubtful(version.clone());
        }
    }

    /// Marks the version as unavailable: it must not be requested again.
    pub(super) fn give_up(&mut self) {
        if let Self::At(version) | Self::Doubtful(version) = self {
            *self = Self::Unavailable(version.clone());
        } else if *self == Self::Start {
            *self = Self::Restored;
        }
    }

    /// Returns true if a watch can continue from a version: it is not empty, and it is not older than the last one or
    /// does not compare with it.
    pub(super) fn can_reach(&self, version: &ResourceVersion) -> bool {
        !version.as_str().is_empty() && self.version().is_none_or(|last| version.is_at_least(last) || !last.is_number())
    }

    /// Returns true if a version is older than the last one. That only happens if the API server was restored.
    pub(super) fn is_contradicted_by(&self, version: Option<&ResourceVersion>) -> bool {
        version.zip(self.version()).is_some_and(|(now, last)| now.is_older_than(last))
    }
}
