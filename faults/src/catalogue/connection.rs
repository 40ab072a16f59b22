//! Connections that fail, and the encryption on them.

use kube_embedded_apiserver::{Action, Fault, History, Verb};

use super::{LONG, Row, encrypted, fault, lasting, lists, of_watches, pages, reopened};
use crate::step::{Certificate, Setup, Step};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("F1", "connections are refused", "Nobody listens for 10 s.").steps([
            Step::Stop,
            Step::Wait(10.0),
            Step::Serve(Certificate::Good),
        ]),
        Row::new("F2", "connections are reset before any answer", "Every request, for 10 s.")
            .steps(lasting(10.0, reopened([fault(Action::ResetBeforeAnswer)]))),
        Row::new("F3", "watches are reset between two events", "Each watch after seven events, for 8 s.")
            .steps(lasting(8.0, reopened([of_watches(Action::ResetAfterEvents(7))]))),
        Row::new("F4", "watches are cut within an event", "Each watch after 2,000 bytes, for 8 s.")
            .steps(lasting(8.0, reopened([of_watches(Action::ResetAfterBytes(2000))]))),
        Row::new("F28", "the server restarts and forgets its history", "Nobody listens for 2 s, and no old version is known afterwards.")
            .steps([
                Step::Stop,
                Step::Burst(20),
                Step::Restart(History::Lost),
                Step::Wait(2.0),
                Step::Serve(Certificate::Good),
            ]),
        Row::new("F29", "the server restarts between two pages of a list", "1,200 objects on a server without streams; it restarts while the second page is waited for, and forgets its history.")
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
        Row::new("F30", "an open connection goes dead", "Over HTTPS, through a wire on which nothing passes any more in either direction; new connections are fine.")
            .on(Setup { wire: true, ..encrypted() })
            .steps([Step::GoDead])
            .within(LONG),
        Row::new("F30b", "an open connection goes dead, without HTTP/2", "As before, over HTTP/1.1 without encryption. The wire's own end still answers TCP's probes, which nobody would if packets were lost: whoever relies on them alone does better in life.")
            .on(Setup { wire: true, ..Setup::default() })
            .steps([Step::GoDead])
            .within(LONG),
        Row::new("F31", "a watch comes one byte a second", "The next watch, once.")
            .steps(reopened([Step::Fault(Fault::new(Action::Drip { bytes: 1, pause: std::time::Duration::from_secs(1) }).verb(Verb::Watch).times(1))]))
            .within(LONG),
        Row::new("F39", "a list is cut short", "A server without streams; each list after 5,000 bytes, for 8 s.")
            .on(lists())
            .steps(lasting(8.0, super::relisted([super::of_lists(Action::ResetAfterBytes(5000))]))),
        Row::new("F45", "the certificate is a wrong one", "Over HTTPS; all connections are closed, and for 8 s the server shows a certificate that has expired and that nobody signed.")
            .on(encrypted())
            .steps([
                Step::Stop,
                Step::Serve(Certificate::Expired),
                Step::Wait(8.0),
                Step::Stop,
                Step::Serve(Certificate::Good),
            ]),
        Row::new("F46", "connections are closed after their answers", "Over HTTPS; every watch, for 8 s, and all of them are opened anew every 2 s: GOAWAY, or `Connection: close`.")
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
        Row::new("F47", "single streams of HTTP/2 are reset", "Over HTTPS; each watch after seven events, for 8 s. kube-rs speaks HTTP/1.1, so that its connection is reset.")
            .on(encrypted())
            .steps(lasting(8.0, reopened([of_watches(Action::ResetAfterEvents(7))]))),
        Row::new("F47b", "lists are reset on HTTP/2", "Over HTTPS, on a server without streams; each list before its answer, for 8 s.")
            .on(Setup { tls: true, ..lists() })
            .steps(lasting(8.0, super::relisted([super::of_lists(Action::ResetBeforeAnswer)]))),
    ]
}
