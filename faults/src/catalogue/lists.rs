//! Lists that fail, or are not what they should be. Servers without streams, so that everybody lists.

use std::time::Duration;

use kube_embedded_apiserver::{Action, Fault, ListFlaw, Verb};

use super::{Row, code, lasting, lists, of_lists, pages, relisted};
use crate::step::{Followed, Setup, Step};

pub(super) fn rows() -> Vec<Row> {
    let twice = |flaw| Step::Fault(Fault::list(flaw).times(2));
    let of_pages = |action| Step::Fault(Fault::new(action).verb(Verb::List).query_contains("continue="));
    vec![
        Row::new(
            "F13",
            "history is forgotten between two pages",
            "1,200 objects on a server without streams; three times, when the second page is asked for.",
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
        Row::new("F16", "lists fail with 500", "A server without streams; for 8 s.")
            .on(lists())
            .steps(lasting(8.0, relisted([of_lists(code(500))]))),
        Row::new("F16b", "lists fail with 503", "A server without streams; for 8 s.")
            .on(lists())
            .steps(lasting(8.0, relisted([of_lists(code(503))]))),
        Row::new(
            "F34",
            "the first list is huge and slow",
            "From the start: 400 objects of 300 KB, ten a tenth of a second.",
        )
        .on(Setup { objects: 400, bytes: 300_000, pace: Some(10), ..lists() })
        .heavy(),
        Row::new(
            "F40",
            "the items of an empty list are null",
            "From the start, in a namespace without objects, which come later; a server without streams.",
        )
        .on(Setup { followed: Followed::Namespace("b"), objects: 1, ..lists() })
        .before([Step::Pause, of_lists(Action::List(ListFlaw::NullItems))])
        .steps([Step::Wait(3.0), Step::Clear, Step::Resume]),
        Row::new("F40b", "lists have no version", "A server without streams; two lists.")
            .on(lists())
            .steps(relisted([twice(ListFlaw::NoVersion)])),
        Row::new("F40c", "an object is in a list twice", "A server without streams; two lists.")
            .on(lists())
            .steps(relisted([twice(ListFlaw::DuplicateItem)])),
        Row::new("F41", "a list is a table", "A server without streams; two lists.")
            .on(lists())
            .steps(relisted([twice(ListFlaw::Table)])),
        Row::new("F41b", "a list holds metadata only", "A server without streams; two lists.")
            .on(lists())
            .steps(relisted([twice(ListFlaw::MetadataOnly)])),
        Row::new(
            "F55",
            "a page leads to itself",
            "1,200 objects on a server without streams; for 10 s every page after the first leads to itself.",
        )
        .on(pages())
        .steps(lasting(10.0, relisted([of_pages(Action::List(ListFlaw::SameContinue))])))
        .heavy(),
        Row::new("F55b", "an empty page leads to itself", "The same, and the page is empty.")
            .on(pages())
            .steps(lasting(10.0, relisted([of_pages(Action::List(ListFlaw::EmptyPage))])))
            .heavy(),
        Row::new(
            "F55c",
            "a page holds more than was asked for",
            "1,200 objects on a server without streams; every page holds one object more, for 8 s.",
        )
        .on(pages())
        .steps(lasting(8.0, relisted([of_lists(Action::List(ListFlaw::DuplicateItem))]))),
        Row::new(
            "F56",
            "the number of what remains is wrong",
            "1,200 objects on a server without streams; -5 in every list, for 8 s.",
        )
        .on(pages())
        .steps(lasting(8.0, relisted([of_lists(Action::List(ListFlaw::RemainingCount(-5)))]))),
    ]
}
