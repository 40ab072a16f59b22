//! The tokens of service accounts that the server has issued.

use jiff::Timestamp;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::storage::key::StoreKey;

/// The number of tokens that the server remembers. The oldest token is forgotten first.
const MAX_TOKENS: usize = 10_000;

/// What a token says about its owner.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct IssuedToken {
    /// The service account.
    pub(crate) account: StoreKey,
    /// The uid of the service account when the token was issued.
    pub(crate) uid: String,
    pub(crate) audiences: Vec<String>,
    pub(crate) expires: Timestamp,
    /// The id of the token, `jti` in its claims.
    pub(crate) id: String,
}

/// The tokens that the server has issued. They are remembered, so no signature has to be checked.
#[derive(Debug, Default)]
pub(crate) struct IssuedTokens(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    tokens: HashMap<String, Arc<IssuedToken>>,
    /// The tokens in the order in which they were issued.
    order: VecDeque<String>,
}

impl IssuedTokens {
    pub(crate) fn add(&self, token: String, about: IssuedToken) {
        let mut remembered = self.0.lock();
        remembered.order.push_back(token.clone());
        remembered.tokens.insert(token, Arc::new(about));
        if remembered.order.len() > MAX_TOKENS
            && let Some(oldest) = remembered.order.pop_front()
        {
            remembered.tokens.remove(&oldest);
        }
    }

    /// Returns what an issued token says, even if it has expired; `None` for a token of another issuer.
    pub(crate) fn find(&self, token: &str) -> Option<Arc<IssuedToken>> {
        self.0.lock().tokens.get(token).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_token_is_forgotten_first() {
        let tokens = IssuedTokens::default();
        for number in 0..=MAX_TOKENS {
            let id = number.to_string();
            let account = StoreKey::new(Some("default"), "robot");
            let about = IssuedToken {
                account,
                uid: "u".into(),
                audiences: vec![],
                expires: Timestamp::UNIX_EPOCH,
                id: id.clone(),
            };
            tokens.add(id, about);
        }
        assert_eq!(tokens.find("0"), None);
        assert_eq!(tokens.find("1").unwrap().id, "1");
        assert_eq!(tokens.find(&MAX_TOKENS.to_string()).unwrap().uid, "u");
    }
}
