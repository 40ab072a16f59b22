use crate::support::*;
use kube_embedded_apiserver::{AnsweredFrom, ApiServer};
use serde_json::json;

fn five(server: &ApiServer) {
    for name in ["c", "a", "e", "b", "d"] {
        put_config_map(server, name);
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_has_a_version_and_no_items() {
    let list = get(&server(), CONFIG_MAPS).await.json();
    assert_eq!((&list["kind"], &list["items"]), (&json!("ConfigMapList"), &json!([])));
    assert!(version(&list) > 0);
    assert_eq!(list["metadata"].as_object().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_state_although_writes_happen_between_them() {
    let server = server();
    five(&server);
    let first = get(&server, &format!("{CONFIG_MAPS}?limit=2")).await;
    assert_eq!(first.names(), ["a", "b"]);
    assert_eq!(first.json()["metadata"]["remainingItemCount"], 3);
    server.delete("configmaps", Some("default"), "c").unwrap();
    put_config_map(&server, "f");
    let token = first.json()["metadata"]["continue"].as_str().unwrap().to_owned();
    let second = get(&server, &format!("{CONFIG_MAPS}?limit=2&continue={token}")).await;
    assert_eq!(second.names(), ["c", "d"]);
    assert_eq!(version(&second.json()), version(&first.json()));
    assert_eq!(second.json()["metadata"]["remainingItemCount"], 1);
    let token = second.json()["metadata"]["continue"].as_str().unwrap().to_owned();
    let third = get(&server, &format!("{CONFIG_MAPS}?limit=2&continue={token}")).await;
    assert_eq!(third.names(), ["e"]);
    assert_eq!(third.json()["metadata"].as_object().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_expired_token_gets_an_error_with_a_new_token() {
    let server = server();
    five(&server);
    let first = get(&server, &format!("{CONFIG_MAPS}?limit=2")).await;
    put_config_map(&server, "bb");
    server.compact();
    let token = first.json()["metadata"]["continue"].as_str().unwrap().to_owned();
    let expired = get(&server, &format!("{CONFIG_MAPS}?limit=9&continue={token}")).await;
    assert_eq!((expired.code, &expired.json()["reason"]), (410, &json!("Expired")));
    let token = expired.json()["metadata"]["continue"].as_str().unwrap().to_owned();
    let rest = get(&server, &format!("{CONFIG_MAPS}?limit=9&continue={token}")).await;
    assert_eq!(rest.names(), ["bb", "c", "d", "e"]);
}

#[tokio::test(start_paused = true)]
async fn match_and_limit_decide_which_state_a_version_selects() {
    let server = server();
    five(&server);
    let old = server.revision();
    put_config_map(&server, "f");
    let names = async |query: &str| {
        let answer = get(&server, &format!("{CONFIG_MAPS}?{query}")).await;
        assert_eq!(answer.code, 200, "{query}: {}", answer.text);
        (answer.names().len(), version(&answer.json()) == old)
    };
    assert_eq!(names(&format!("resourceVersion={old}")).await, (6, false));
    assert_eq!(names(&format!("resourceVersion={old}&limit=500")).await, (5, true));
    assert_eq!(names(&format!("resourceVersion={old}&resourceVersionMatch=Exact")).await, (5, true));
    assert_eq!(names(&format!("resourceVersion={old}&resourceVersionMatch=NotOlderThan&limit=2")).await, (2, false));
    assert_eq!(names("resourceVersion=0&limit=2").await, (6, false));
    let from: Vec<_> = server.requests().iter().map(|record| record.answered_from).collect();
    assert_eq!(from[0], Some(AnsweredFrom::Cache));
    assert_eq!(from[2], Some(AnsweredFrom::CacheSnapshot));
    server.compact();
    let expired = get(&server, &format!("{CONFIG_MAPS}?resourceVersion={old}&resourceVersionMatch=Exact")).await;
    let expected = concat!(
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
        r#""message":"The resourceVersion for the provided list is too old.","reason":"Expired","code":410}"#,
        "\n"
    );
    assert_eq!(expired.text, expected);
}

#[tokio::test(start_paused = true)]
async fn a_list_waits_for_a_future_version_and_is_then_refused() {
    let server = server();
    let started = tokio::time::Instant::now();
    let future = server.revision() + 1_000_000;
    let refused = get(&server, &format!("{CONFIG_MAPS}?resourceVersion={future}")).await;
    assert_eq!(started.elapsed().as_secs(), 3);
    assert_eq!(refused.code, 504);
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(refused.json()["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    let next = server.revision() + 1;
    let path = format!("{CONFIG_MAPS}?resourceVersion={next}");
    let (answer, _) = tokio::join!(get(&server, &path), async { put_config_map(&server, "a") });
    assert_eq!((answer.code, answer.names()), (200, vec!["a".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn conflicting_list_options_are_refused() {
    let server = server();
    let check = async |query: &str, code: u16, text: &str| {
        let answer = get(&server, &format!("{CONFIG_MAPS}?{query}")).await;
        assert_eq!(answer.code, code, "{query}");
        assert!(answer.text.contains(text), "{query}: {}", answer.text);
    };
    check("resourceVersionMatch=Exact", 422, "resourceVersionMatch is forbidden unless resourceVersion is provided")
        .await;
    check("resourceVersionMatch=Exact&resourceVersion=0", 422, "is forbidden for resourceVersion").await;
    check("resourceVersionMatch=Foo&resourceVersion=5", 422, "FieldValueNotSupported").await;
    check("continue=x&resourceVersionMatch=Exact&resourceVersion=5", 422, "when continue is provided").await;
    check("continue=x&resourceVersion=5", 400, "specifying resource version is not allowed when using continue").await;
    check("continue=garbage", 400, "continue key is not valid").await;
    check("resourceVersion=abc", 400, "invalid resource version").await;
    check("sendInitialEvents=true", 422, "sendInitialEvents is forbidden for list").await;
    check("limit=x", 400, "strconv.ParseInt").await;
    check("labelSelector=a%20b", 400, "unable to parse requirement").await;
    check("fieldSelector=data.k%3Dv", 400, "is not a known field selector").await;
}

#[tokio::test(start_paused = true)]
async fn all_namespaces_are_ordered_by_joined_keys_and_selectors_narrow_them() {
    let server = server();
    for (namespace, name) in [("a", "x"), ("a-b", "x"), ("b", "y")] {
        let mut object = config_map(name);
        object["metadata"]["labels"] = json!({"of": namespace});
        server.create("configmaps", Some(namespace), object).unwrap();
    }
    let order = async |query: &str| {
        let list = get(&server, &format!("/api/v1/configmaps?{query}")).await.json();
        let spaces = list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["namespace"].clone());
        spaces.map(|space| space.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(order("").await, ["a-b", "a", "b"]);
    assert_eq!(order("labelSelector=of%20in%20(a,b)").await, ["a", "b"]);
    assert_eq!(order("fieldSelector=metadata.name%3Dy").await, ["b"]);
    assert_eq!(order("fieldSelector=metadata.namespace!%3Da").await, ["a-b", "b"]);
    let page = get(&server, "/api/v1/configmaps?limit=1&labelSelector=of").await.json();
    assert!(page["metadata"]["continue"].is_string());
    assert_eq!(page["metadata"].get("remainingItemCount"), None);
}

#[tokio::test(start_paused = true)]
async fn items_of_built_in_lists_have_no_kind_and_custom_ones_have() {
    let server = server();
    put_config_map(&server, "a");
    let widget = json!({"apiVersion": "demo.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    server.create("widgets.demo.example.com", Some("default"), widget).unwrap();
    assert_eq!(get(&server, CONFIG_MAPS).await.json()["items"][0].get("kind"), None);
    let widgets = get(&server, "/apis/demo.example.com/v1/widgets").await.json();
    assert_eq!((&widgets["kind"], &widgets["items"][0]["kind"]), (&json!("WidgetList"), &json!("Widget")));
}

#[tokio::test(start_paused = true)]
async fn unknown_paths_and_methods_have_different_errors() {
    let server = server();
    let unknown = get(&server, "/api/v1/nopes").await;
    assert_eq!(
        (unknown.code, &unknown.json()["message"]),
        (404, &json!("the server could not find the requested resource"))
    );
    let elsewhere = get(&server, "/apis/nope.example.com/v1").await;
    assert_eq!((elsewhere.code, elsewhere.text.as_str()), (404, "404 page not found\n"));
    assert_eq!(put(&server, CONFIG_MAPS, &json!({})).await.json()["reason"], "MethodNotAllowed");
    let missing = get(&server, &format!("{CONFIG_MAPS}/zzz")).await;
    let expected = concat!(
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"configmaps \"zzz\" not found","#,
        r#""reason":"NotFound","details":{"name":"zzz","kind":"configmaps"},"code":404}"#,
        "\n"
    );
    assert_eq!((missing.code, missing.text.as_str()), (404, expected));
}

#[tokio::test(start_paused = true)]
async fn a_long_list_in_chunks_is_complete() {
    let server = server();
    for index in 0..3_000 {
        put_config_map(&server, &format!("n{index:04}"));
    }
    let names = get(&server, CONFIG_MAPS).await.names();
    assert_eq!((names.len(), names[2_999].as_str()), (3_000, "n2999"));
}

#[tokio::test(start_paused = true)]
async fn a_request_takes_no_longer_than_its_timeout() {
    let server = server();
    let future = server.revision() + 1_000;
    let asked = async |timeout: &str| {
        let started = tokio::time::Instant::now();
        let answer = get(&server, &format!("{CONFIG_MAPS}?resourceVersion={future}&timeout={timeout}")).await;
        (started.elapsed().as_secs(), answer.code, answer.json()["message"].as_str().unwrap().to_owned())
    };
    let timeout = "Timeout: request did not complete within the allotted timeout".to_owned();
    assert_eq!(asked("2s").await, (2, 504, timeout));
    let (waited, code, message) = asked("32s").await;
    assert_eq!((waited, code, message.contains("Too large resource version")), (3, 504, true));
    assert_eq!(asked("abc").await.1, 400);
    assert_eq!(get(&server, "/api?timeout=abc").await.code, 400);
    let mut watch = Watch::open(&server, &format!("{CONFIG_MAPS}?watch=1&timeout=1s&timeoutSeconds=5")).await;
    let started = tokio::time::Instant::now();
    assert!(watch.until_end().await.is_empty());
    assert_eq!(started.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn the_server_waits_at_most_a_minute_for_a_request_body() {
    let server = server();
    let never = http_body_util::StreamBody::new(futures_util::stream::pending::<
        std::io::Result<http_body::Frame<bytes::Bytes>>,
    >());
    let started = tokio::time::Instant::now();
    let request = http::Request::post(CONFIG_MAPS).body(never).unwrap();
    let answer = tower::ServiceExt::oneshot(server, request).await.unwrap();
    assert_eq!((answer.status().as_u16(), started.elapsed().as_secs()), (504, 60));
}

#[tokio::test(start_paused = true)]
async fn objects_in_the_rows_of_a_table_have_kind_and_version() {
    let server = server();
    server.create("pods", Some("default"), json!({"metadata": {"name": "p"}, "spec": {"containers": []}})).unwrap();
    server.create("widgets", Some("default"), json!({"metadata": {"name": "w"}})).unwrap();
    for (path, kind, version) in [
        ("/api/v1/pods", "Pod", "v1"),
        ("/apis/demo.example.com/v1/widgets", "Widget", "demo.example.com/v1"),
        ("/api/v1/namespaces/default/pods/p", "Pod", "v1"),
    ] {
        let request = http::Request::get(format!("{path}?includeObject=Object"));
        let request = request.header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
        let table = send(&server, request.body(Default::default()).unwrap()).await.json();
        let object = &table["rows"][0]["object"];
        assert_eq!((&object["kind"], &object["apiVersion"]), (&kind.into(), &version.into()), "{path}");
    }
}
