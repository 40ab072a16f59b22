//! Responses that are refusals, or come from a proxy.

use kube_embedded_apiserver::{Action, Fault};

use super::{Row, code, encrypted, fault, lasting, lists, relisted, reopened};
use crate::step::{Setup, Step};

const HTML: &str = "<html><body><h1>Please log in</h1></body></html>\n";

pub(super) fn rows() -> Vec<Row> {
    let everything = |id, title, action| {
        Row::new(id, title, "Every request, for 8 s.").steps(lasting(8.0, reopened([fault(action)])))
    };
    vec![
        everything("F14", "429 with Retry-After", Action::Status { code: 429, retry_after: Some(1) }),
        Row::new("F14b", "429 with Retry-After, as plain text", "Every request, for 8 s.")
            .steps(lasting(8.0, reopened([Step::Fault(Fault::too_many_requests(Some(1)))]))),
        everything("F15", "429 without Retry-After", code(429)),
        everything("F35", "JSON responses have the media type of HTML", Action::ContentType(Some("text/html"))),
        Row::new(
            "F35b",
            "JSON lists have the media type of HTML",
            "Server without streaming lists; every response, for 8 s.",
        )
        .on(lists())
        .steps(lasting(8.0, relisted([fault(Action::ContentType(Some("text/html")))]))),
        Row::new("F36", "responses have no media type", "Server without streaming lists; every response, for 8 s.")
            .on(lists())
            .steps(lasting(8.0, relisted([fault(Action::ContentType(None))]))),
        Row::new("F37", "a proxy answers 502 with an HTML page", "Every request, for 8 s.")
            .steps(lasting(8.0, reopened([Step::Fault(Fault::html_page(502))]))),
        Row::new("F37b", "a proxy answers 200 with an HTML page", "Every request, for 8 s.")
            .steps(lasting(8.0, reopened([Step::Fault(Fault::html_page(200))]))),
        Row::new("F38", "requests are redirected to a login page", "Every request, for 8 s; the login page exists.")
            .steps(lasting(8.0, reopened([Step::Fault(login()), Step::Fault(Fault::redirect("/login?page=login"))]))),
        Row::new("F43", "401 once", "The next request.").steps(reopened([Step::Fault(Fault::status(401).times(1))])),
        Row::new("F44", "401 to everything", "For 20 s, so that recovery can be measured.")
            .steps(lasting(20.0, reopened([fault(code(401))])))
            .within(90.0),
        Row::new("F44b", "403 to everything", "For 20 s.")
            .steps(lasting(20.0, reopened([fault(code(403))])))
            .within(90.0),
        Row::new("F57", "responses have many Warning headers", "60 headers on every response, for 8 s.")
            .steps(lasting(8.0, reopened([fault(Action::Warnings(60))]))),
        Row::new("F57b", "responses have very many Warning headers", "300 headers on every response, for 8 s.")
            .steps(lasting(8.0, reopened([fault(Action::Warnings(300))]))),
        Row::new(
            "F57c",
            "responses have very many Warning headers on HTTP/2",
            "300 headers on every response, for 8 s, over HTTPS.",
        )
        .on(Setup { ..encrypted() })
        .steps(lasting(8.0, reopened([fault(Action::Warnings(300))]))),
    ]
}

fn login() -> Fault {
    let page = Action::Page { code: 200, content_type: "text/html", header: None, body: HTML.to_owned() };
    Fault::new(page).query_contains("page=login")
}
