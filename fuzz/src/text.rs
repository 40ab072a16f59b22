//! Strings that users and programs write.

use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded_apiserver::ApiServer;
use kube_informer::{ObjectKey, Selector};
use serde_json::{Value, json};

use crate::ask::encoded;
use crate::requests::answer;

/// A key that can be parsed is formatted as the same string.
pub fn keys(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(key) = text.parse::<ObjectKey>() {
        assert_eq!(key.to_string(), text);
        assert_eq!(key.as_str(), text);
        assert!(!key.name().is_empty() && !key.name().contains('/'));
        let again = match key.namespace() {
            Some(namespace) => format!("{namespace}/{}", key.name()),
            None => key.name().to_owned(),
        };
        assert_eq!(again, text);
    }
}

/// Client and server agree about a label selector: both refuse it, or both select the same objects.
pub fn selectors(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let ours = text.parse::<Selector>();
    let objects = [json!({}), json!({"a": "b"}), json!({"a": "", "x": "1"}), json!({"app": "shop", "tier": "web"})];
    let server = ApiServer::builder().seed(1).build();
    for (number, labels) in objects.iter().enumerate() {
        let object = json!({"metadata": {"name": format!("map-{number}"), "labels": labels}});
        server.create("configmaps", Some("default"), object).expect("a config map");
    }
    let query = format!("/api/v1/configmaps?labelSelector={}", encoded(text));
    let (code, theirs) = crate::run(answer(&server, "GET", &query, "", Vec::new()));
    match ours {
        Err(error) => assert_eq!(code, 400, "{text:?}: {error}"),
        Ok(selector) => {
            assert_eq!(code, 200, "{text:?}: {theirs:?}");
            let theirs: Value = serde_json::from_slice(&theirs).expect("a list");
            let chosen = theirs["items"].as_array().map_or(0, Vec::len);
            let maps = objects.iter().map(|labels| -> ConfigMap {
                serde_json::from_value(json!({"metadata": {"labels": labels}})).expect("a config map")
            });
            assert_eq!(maps.filter(|map| selector.matches(map)).count(), chosen, "{text:?}");
        }
    }
    let query = format!("/api/v1/configmaps?fieldSelector={}", encoded(text));
    let (code, _) = crate::run(answer(&server, "GET", &query, "", Vec::new()));
    assert!(matches!(code, 200 | 400), "{text:?} as a field selector: {code}");
}
