//! The kubeconfig of a server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Returns a kubeconfig with one cluster, one user and one context, all named `embedded`.
pub(crate) fn kubeconfig(url: &str, authority: Option<&str>, token: Option<&str>) -> String {
    let authority =
        authority.map_or_else(String::new, |pem| format!("    certificate-authority-data: {}\n", STANDARD.encode(pem)));
    let user = token.map_or_else(
        || "  user: {}\n".to_owned(),
        // A JSON string is valid YAML, whatever the token contains.
        |token| format!("  user:\n    token: {}\n", serde_json::Value::from(token)),
    );
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: embedded\nclusters:\n- name: embedded\n  cluster:\n    \
         server: {url}\n{authority}contexts:\n- name: embedded\n  context:\n    cluster: embedded\n    \
         user: embedded\n    namespace: default\nusers:\n- name: embedded\n{user}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_kubeconfig_names_address_authority_and_token() {
        let text = kubeconfig("https://127.0.0.1:6443", Some("PEM"), Some("to\"ken"));
        let parsed: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(parsed["clusters"][0]["cluster"]["server"], "https://127.0.0.1:6443");
        assert_eq!(parsed["clusters"][0]["cluster"]["certificate-authority-data"], "UEVN");
        assert_eq!(parsed["users"][0]["user"]["token"], "to\"ken");
        assert_eq!(parsed["contexts"][0]["context"]["namespace"], "default");
        let bare: Value = serde_saphyr::from_str(&kubeconfig("http://x", None, None)).unwrap();
        assert_eq!(bare["clusters"][0]["cluster"].as_object().unwrap().len(), 1);
    }
}
