//! Faults of lists, and of responses in general.

use super::*;
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use kube_embedded_apiserver::{Body, ListFlaw};
use serde_json::{Value, json};
use std::io::Read;

pub(super) async fn a_list_of_a_version_has_expired() {
    check_list(Fault::status(410), "status", |answer| answer.json()["reason"] == "Expired").await;
    let server = two();
    let old = server.revision() - 1;
    server.compact();
    let refused = get(&server, &format!("{CONFIG_MAPS}?resourceVersion={old}&resourceVersionMatch=Exact")).await;
    assert_eq!((refused.code, &refused.json()["reason"]), (410, &json!("Expired")));
    assert_eq!(on_record(&server), ["compact"]);
}

pub(super) async fn history_is_lost_between_two_pages() {
    let server = two();
    server.faults().add(Fault::new(Action::Compact).query_contains("continue="));
    let first = get(&server, &format!("{CONFIG_MAPS}?limit=1")).await.json();
    put_config_map(&server, "c");
    let token = first["metadata"]["continue"].as_str().unwrap();
    let refused = get(&server, &format!("{CONFIG_MAPS}?limit=1&continue={token}")).await;
    assert_eq!((refused.code, refused.json()["metadata"]["continue"].is_string()), (410, true));
    assert_eq!(on_record(&server), ["compact"]);
}

pub(super) async fn requests_are_limited_with_a_time_to_wait() {
    check_list(Fault::too_many_requests(Some(2)), "page", |answer| {
        answer.code == 429 && answer.headers["retry-after"] == "2" && answer.text.starts_with("Too many requests")
    })
    .await;
    check_list(Fault::status_retry_after(429, 7), "status", |answer| {
        answer.headers["retry-after"] == "7" && answer.json()["details"]["retryAfterSeconds"] == 7
    })
    .await;
}

pub(super) async fn requests_are_limited_without_a_time_to_wait() {
    for (fault, kind) in [(Fault::too_many_requests(None), "page"), (Fault::status(429), "status")] {
        check_list(fault, kind, |answer| answer.code == 429 && !answer.headers.contains_key("retry-after")).await;
    }
}

pub(super) async fn a_list_fails() {
    for code in [500, 502, 503, 504] {
        check_list(Fault::status(code), "status", |answer| {
            answer.code == code && answer.json()["code"] == code && !answer.headers.contains_key("retry-after")
        })
        .await;
    }
}

pub(super) async fn a_version_is_too_large() {
    let too_large = |answer: &Answer| {
        let cause = &answer.json()["details"]["causes"][0]["reason"];
        answer.code == 504 && answer.headers["retry-after"] == "1" && cause == "ResourceVersionTooLarge"
    };
    check_list(Fault::new(Action::VersionTooLarge), "version_too_large", too_large).await;
    // Without a fault: the server was restored, and the version that a client knows is in the future.
    let server = two();
    let saved = server.save();
    let future = put_config_map(&server, "c");
    server.restore(&saved);
    assert!(too_large(&get(&server, &format!("{CONFIG_MAPS}?resourceVersion={future}")).await));
    assert_eq!(on_record(&server), ["restore"]);
}

fn media_type(answer: &Answer) -> Option<&str> {
    answer.headers.get("content-type").map(|value| value.to_str().unwrap())
}

pub(super) async fn the_media_type_is_wrong() {
    for wrong in ["text/html", "application/octet-stream"] {
        check_list(Fault::new(Action::ContentType(Some(wrong))), "content_type", |answer| {
            media_type(answer) == Some(wrong) && answer.names().len() == 2
        })
        .await;
    }
    let server = two();
    server.faults().add(Fault::new(Action::ContentType(Some("text/html"))));
    let mut watch = Watch::open(&server, WATCH).await;
    assert_eq!(watch.headers["content-type"], "text/html");
    assert_eq!(watch.told().await, "ADDED a");
    assert_eq!(on_record(&server), ["content_type"]);
}

pub(super) async fn the_media_type_is_missing() {
    check_list(Fault::new(Action::ContentType(None)), "content_type", |answer| media_type(answer).is_none()).await;
}

pub(super) async fn a_proxy_answers_with_a_page() {
    for code in [200, 502, 503, 504] {
        check_list(Fault::html_page(code), "page", |answer| {
            answer.code == code && answer.text.contains("<html>") && media_type(answer) == Some("text/html")
        })
        .await;
    }
}

pub(super) async fn a_redirect_leads_elsewhere() {
    check_list(Fault::redirect("https://login.example.com/"), "page", |answer| {
        answer.code == 302 && answer.headers["location"] == "https://login.example.com/"
    })
    .await;
}

async fn flawed(flaw: ListFlaw, kind: &str, expect: fn(&Value) -> bool) {
    check_list(Fault::list(flaw), kind, |answer| expect(&answer.json())).await;
}

pub(super) async fn a_list_lacks_items_or_version_or_holds_one_twice() {
    flawed(ListFlaw::NullItems, "null_items", |list| list["items"].is_null()).await;
    flawed(ListFlaw::NoVersion, "no_version", |list| list["metadata"].get("resourceVersion").is_none()).await;
    flawed(ListFlaw::DuplicateItem, "duplicate_item", |list| list["items"].as_array().unwrap().len() == 3).await;
    flawed(ListFlaw::MissingItems(1), "missing_items", |list| list["items"].as_array().unwrap().len() == 1).await;
}

pub(super) async fn a_list_is_an_unrequested_table_or_metadata() {
    flawed(ListFlaw::Table, "table", |list| list["kind"] == "Table" && list["rows"][0]["cells"][0] == "a").await;
    flawed(ListFlaw::MetadataOnly, "metadata_only", |list| list["items"][0].get("data").is_none()).await;
    flawed(ListFlaw::OtherKind, "other_kind", |list| list["kind"] == "UnexpectedList").await;
}

pub(super) async fn a_token_is_refused_once() {
    let server = two();
    server.faults().add(Fault::status(401).times(1));
    let refused = get(&server, CONFIG_MAPS).await;
    assert_eq!((refused.code, &refused.json()["reason"]), (401, &json!("Unauthorized")));
    assert_eq!(get(&server, CONFIG_MAPS).await.code, 200);
    assert_eq!(on_record(&server), ["status"]);
}

pub(super) async fn a_token_is_refused_for_ever() {
    for code in [401, 403] {
        let server = two();
        server.faults().add(Fault::status(code));
        for _ in 0..10 {
            assert_eq!(get(&server, CONFIG_MAPS).await.code, code);
            assert_eq!(watched(&server).await, [code.to_string()]);
        }
        assert_eq!(server.faults().count("status"), 20);
    }
}

pub(super) async fn continue_tokens_repeat_or_are_invalid() {
    for (flaw, items) in [(ListFlaw::SameContinue, 1), (ListFlaw::EmptyPage, 0)] {
        let server = two();
        server.faults().add(Fault::list(flaw));
        let first = get(&server, &format!("{CONFIG_MAPS}?limit=1")).await;
        assert_eq!(first.names(), ["a"]);
        let token = first.json()["metadata"]["continue"].as_str().unwrap().to_owned();
        for _ in 0..3 {
            let page = get(&server, &format!("{CONFIG_MAPS}?limit=1&continue={token}")).await;
            assert_eq!((page.names().len(), &page.json()["metadata"]["continue"]), (items, &json!(token)));
        }
        assert_eq!(on_record(&server).len(), 3);
    }
    let server = two();
    server.faults().add(Fault::list(ListFlaw::DuplicateItem));
    assert_eq!(get(&server, &format!("{CONFIG_MAPS}?limit=1")).await.names(), ["a", "a"]);
    assert_eq!(on_record(&server), ["duplicate_item"]);
}

pub(super) async fn the_remaining_item_count_is_wrong() {
    flawed(ListFlaw::RemainingCount(-5), "remaining_count", |list| list["metadata"]["remainingItemCount"] == -5).await;
}

pub(super) async fn warnings_come_in_floods() {
    check_list(Fault::new(Action::Warnings(100)), "warnings", |answer| {
        answer.headers.get_all("warning").iter().count() == 100
    })
    .await;
}

async fn compressed(server: &ApiServer, path: &str) -> Response<Body> {
    let request = Request::get(path).header("accept-encoding", "gzip").body(Full::<Bytes>::default()).unwrap();
    server.clone().oneshot(request).await.unwrap()
}

/// Returns all bytes until the body ends or breaks, and whether it broke.
async fn all_bytes(response: Response<Body>) -> (Vec<u8>, bool) {
    let (mut body, mut bytes) = (response.into_body(), Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return (bytes, true) };
        bytes.extend_from_slice(frame.data_ref().unwrap());
    }
    (bytes, false)
}

pub(super) async fn a_compressed_body_has_several_members_or_is_cut_or_unrequested() {
    // Several members, and a fault in the events inside them.
    let server = two();
    server.faults().add(Fault::end_after_events(3));
    let (bytes, broken) = all_bytes(compressed(&server, WATCH).await).await;
    let members = bytes.windows(3).filter(|window| *window == [0x1f, 0x8b, 0x08]).count();
    let mut text = String::new();
    MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    assert_eq!((text.lines().count(), members > 1, broken), (3, true, false));
    assert_eq!(on_record(&server), ["end_after_events"]);
    // Cut inside a member.
    let server = two();
    server.faults().add(Fault::reset_after_bytes(30));
    let (bytes, broken) = all_bytes(compressed(&server, WATCH).await).await;
    assert_eq!((bytes.len(), &bytes[..2], broken), (30, &[0x1f, 0x8b][..], true));
    assert_eq!(on_record(&server), ["reset_after_bytes"]);
    // A flaw in a list that is large enough to be compressed.
    let server = two();
    server
        .create("configmaps", Some("default"), json!({"metadata": {"name": "c"}, "data": {"x": "x".repeat(200_000)}}))
        .unwrap();
    server.faults().add(Fault::list(ListFlaw::NullItems));
    let answer = compressed(&server, CONFIG_MAPS).await;
    assert_eq!(on_record(&server), ["null_items"]);
    let (bytes, _) = all_bytes(answer).await;
    assert!(serde_json::from_slice::<Value>(&bytes).unwrap()["items"].is_null());
    // Compressed without a request for it.
    let server = two();
    server.faults().add(Fault::new(Action::UnaskedGzip));
    let response = server.clone().oneshot(request("GET", CONFIG_MAPS, None)).await.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    assert_eq!(all_bytes(response).await.0[..2], [0x1f, 0x8b]);
    assert_eq!(on_record(&server), ["unasked_gzip"]);
}
