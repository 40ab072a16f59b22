//! Continue tokens, in the encoding of kube-apiserver, so that tests can forge them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::status::Status;

const TOKEN_VERSION: &str = "meta.k8s.io/v1";

/// The position at which a list continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContinueToken {
    /// The revision of every page; -1 to continue with the latest one.
    pub(crate) revision: i64,
    /// The first key of the next page, relative to the scope of the list.
    pub(crate) start: String,
}

#[derive(Serialize, Deserialize)]
struct WireToken {
    v: String,
    rv: i64,
    start: String,
}

impl ContinueToken {
    pub(crate) fn encode(&self) -> String {
        let wire = WireToken { v: TOKEN_VERSION.into(), rv: self.revision, start: self.start.clone() };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&wire).unwrap_or_default())
    }

    pub(crate) fn decode(text: &str) -> Result<Self, Status> {
        let refuse = |detail: String| {
            let message = format!("invalid continue token: continue key is not valid{detail}");
            Status::bad_request(message)
        };
        let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|why| refuse(format!(": {why}")))?;
        let wire: WireToken = serde_json::from_slice(&bytes).map_err(|why| refuse(format!(": {why}")))?;
        if wire.v != TOKEN_VERSION {
            return Err(refuse(format!(": server does not recognize this encoded version {:?}", wire.v)));
        }
        if wire.rv == 0 {
            return Err(refuse(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)".into()));
        }
        if wire.start.is_empty() {
            return Err(refuse(": encoded start key empty (version meta.k8s.io/v1)".into()));
        }
        if wire.start.split('/').any(|step| step == "..") {
            return Err(refuse(format!(": {}", wire.start)));
        }
        Ok(Self { revision: wire.rv, start: wire.start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_matches_kube_apiserver() {
        let token = ContinueToken { revision: 1234, start: "cm-2\0".into() };
        let text = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTIzNCwic3RhcnQiOiJjbS0yXHUwMDAwIn0";
        assert_eq!(token.encode(), text);
        assert_eq!(ContinueToken::decode(text), Ok(token));
    }

    #[test]
    fn broken_tokens_are_refused() {
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        for text in [
            "garbage!".to_owned(),
            "garbage".to_owned(),
            encode("{}"),
            encode(r#"{"v":"v0","rv":1,"start":"a"}"#),
            encode(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#),
            encode(r#"{"v":"meta.k8s.io/v1","rv":1,"start":""}"#),
            encode(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a/../b"}"#),
        ] {
            let refused = ContinueToken::decode(&text).unwrap_err();
            assert_eq!(refused.code, 400);
            assert!(refused.message.starts_with("invalid continue token: continue key is not valid"), "{text}");
        }
    }
}
