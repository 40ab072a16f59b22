//! Connections that fail, and TLS.

use kube_embedded_apiserver::{Action, Fault, History, Verb};

use super::{LONG, Row, encrypted, fault, lasting, lists, of_watches, pages, reopened};
use crate::step::{Certificate, Setup, Step};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("F1", "connections are refused", "The server does not listen for 10 s.").steps([
            Step::Stop,
            Step::Wait(10.0),
            Step::Serve(Certificate::Good),
        ]),
        Row::new("F2", "connections are reset before any response", "Every request, for 10 s.")
            .steps(lasting(10.0, reopened([fault(Action::ResetBeforeAnswer)]))),
        Row::new("F3", "watches are reset between two events", "Each watch after seven events, for 8 s.")
            .steps(lasting(8.0, reopened([of_watches(Action::ResetAfterEvents(7))]))),
        Row::new("F4", "watches are cut within an event", "Each watch after 2,000 bytes, for 8 s.")
            .steps(lasting(8.0, reopened([of_watches(Action::ResetAfterBytes(2000))]))),
        Row::new("F28", "the server restarts and forgets its history", "The server does not listen for 2 s, and afterwards knows no old version.")
            .steps([
                Step::Stop,
                Step::Burst(20),
                Step::Restart(History::Lost),
                Step::Wait(2.0),
                Step::Serve(Certificate::Good),
            ]),
        Row::new("F29", "the server restarts between two pages of a list", "1,200 objects, server without streaming lists; it restarts while clients wait for the second page, and forgets its history.")
            .on(pages())
            .steps([
                Step::Fault(Fault::delay(std::time::Duration::from_secs(1)).verb(Verb::List).query_contains("continue=")),
                Step::Hold,
                Step::Disconnect,
                Step::Burst(20),
                Step::Compact,
                Step::Happens("delay", 2),
                Step::Stop,
                Step::Burst(20),
                Step::Restart(History::Lost),
                Step::Clear,
                Step::Serve(Certificate::Good),
            ]),
        Row::new("F30", "an open connection falls silent", "Over HTTPS, through a proxy that stops passing bytes in both directions; new connections work.")
            .on(Setup { wire: true, ..encrypted() })
            .steps([Step::GoDead])
            .within(LONG),
        Row::new("F30b", "an open connection falls silent, without HTTP/2", "As before, over HTTP/1.1 without TLS. The proxy still answers TCP keepalive probes, unlike a broken network, so that a client that relies on them does better in reality.")
            .on(Setup { wire: true, ..Setup::default() })
            .steps([Step::GoDead])
            .within(LONG),
        Row::new("F31", "a watch sends one byte per second", "The next watch, once.")
            .steps(reopened([Step::Fault(Fault::new(Action::Drip { bytes: 1, pause: std::time::Duration::from_secs(1) }).verb(Verb::Watch).times(1))]))
            .within(LONG),
        Row::new("F39", "a list is cut short", "Server without streaming lists; each list after 5,000 bytes, for 8 s.")
            .on(lists())
            .steps(lasting(8.0, super::relisted([super::of_lists(Action::ResetAfterBytes(5000))]))),
        Row::new("F45", "the certificate is invalid", "Over HTTPS; all connections are closed, and for 8 s the server has an expired certificate of an unknown authority.")
            .on(encrypted())
            .steps([
                Step::Stop,
                Step::Serve(Certificate::Expired),
                Step::Wait(8.0),
                Step::Stop,
                Step::Serve(Certificate::Good),
            ]),
        Row::new("F46", "connections are closed after their responses", "Over HTTPS; every watch, for 8 s; all watches are reopened every 2 s: GOAWAY, or `Connection: close`.")
            .on(encrypted())
            .steps([
                fault(Action::ConnectionClose),
                Step::Disconnect,
                Step::Wait(2.0),
                Step::Disconnect,
                Step::Wait(2.0),
                Step::Disconnect,
                Step::Wait(4.0),
                Step::Clear,
            ]),
        Row::new("F47", "single streams of HTTP/2 are reset", "Over HTTPS; each watch after seven events, for 8 s. kube-rs uses HTTP/1.1, so that its connection is reset.")
            .on(encrypted())
            .steps(lasting(8.0, reopened([of_watches(Action::ResetAfterEvents(7))]))),
        Row::new("F47b", "lists are reset on HTTP/2", "Over HTTPS, server without streaming lists; each list before its response, for 8 s.")
            .on(Setup { tls: true, ..lists() })
            .steps(lasting(8.0, super::relisted([super::of_lists(Action::ResetBeforeAnswer)]))),
    ]
}
