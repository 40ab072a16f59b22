//! Lists that fail or are malformed. The servers have no streaming lists, so that all clients list.

use std::time::Duration;

use kube_embedded_apiserver::{Action, Fault, ListFlaw, Verb};

use super::{Row, code, lasting, lists, of_lists, pages, relisted};
use crate::step::{Setup, Step, WatchedCollection};

pub(super) fn rows() -> Vec<Row> {
    let twice = |flaw| Step::Fault(Fault::list(flaw).times(2));
    let of_pages = |action| Step::Fault(Fault::new(action).verb(Verb::List).query_contains("continue="));
    vec![
        Row::new(
            "F13",
            "history is forgotten between two pages",
            "1,200 objects, server without streaming lists; three times, at the request for the second page.",
        )
        .on(pages())
        .steps(lasting(
            10.0,
            relisted([
                Step::Fault(
                    Fault::delay(Duration::from_millis(400)).verb(Verb::List).query_contains("continue=").times(3),
                ),
                Step::Fault(Fault::new(Action::Compact).verb(Verb::List).query_contains("continue=").times(3)),
            ]),
        )),
        Row::new("F16", "lists fail with 500", "Server without streaming lists; for 8 s.")
            .on(lists())
            .steps(lasting(8.0, relisted([of_lists(code(500))]))),
        Row::new("F16b", "lists fail with 503", "Server without streaming lists; for 8 s.")
            .on(lists())
            .steps(lasting(8.0, relisted([of_lists(code(503))]))),
        Row::new("F34", "the first list is huge and slow", "From the start: 400 objects of 300 KB, ten every 0.1 s.")
            .on(Setup { objects: 400, bytes: 300_000, pace: Some(10), ..lists() })
            .heavy(),
        Row::new(
            "F40",
            "the items of an empty list are null",
            "From the start, in a namespace that has no objects until later; server without streaming lists.",
        )
        .on(Setup { followed: WatchedCollection::Namespace("b"), objects: 1, ..lists() })
        .before([Step::Pause, of_lists(Action::List(ListFlaw::NullItems))])
        .steps([Step::Wait(3.0), Step::Clear, Step::Resume]),
        Row::new("F40b", "lists have no resource version", "Server without streaming lists; two lists.")
            .on(lists())
            .steps(relisted([twice(ListFlaw::NoVersion)])),
        Row::new("F40c", "an object is in a list twice", "Server without streaming lists; two lists.")
            .on(lists())
            .steps(relisted([twice(ListFlaw::DuplicateItem)])),
        Row::new("F41", "a list is a table", "Server without streaming lists; two lists.")
            .on(lists())
            .steps(relisted([twice(ListFlaw::Table)])),
        Row::new("F41b", "a list has only metadata of objects", "Server without streaming lists; two lists.")
            .on(lists())
            .steps(relisted([twice(ListFlaw::MetadataOnly)])),
        Row::new(
            "F55",
            "the continue token of a page leads to the same page",
            "1,200 objects, server without streaming lists; every page after the first, for 10 s.",
        )
        .on(pages())
        .steps(lasting(10.0, relisted([of_pages(Action::List(ListFlaw::SameContinue))])))
        .heavy(),
        Row::new("F55b", "the continue token of an empty page leads to the same page", "As before, with empty pages.")
            .on(pages())
            .steps(lasting(10.0, relisted([of_pages(Action::List(ListFlaw::EmptyPage))])))
            .heavy(),
        Row::new(
            "F55c",
            "a page has more objects than its limit",
            "1,200 objects, server without streaming lists; every page has one object more, for 8 s.",
        )
        .on(pages())
        .steps(lasting(8.0, relisted([of_lists(Action::List(ListFlaw::DuplicateItem))]))),
        Row::new(
            "F56",
            "the number of remaining objects is wrong",
            "1,200 objects, server without streaming lists; -5 in every list, for 8 s.",
        )
        .on(pages())
        .steps(lasting(8.0, relisted([of_lists(Action::List(ListFlaw::RemainingCount(-5)))]))),
    ]
}
