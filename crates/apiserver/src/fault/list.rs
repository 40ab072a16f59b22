//! Flaws of a list response that has status 200.

use bytes::Bytes;
use serde_json::{Value, json};

use super::Facts;
use crate::message::query::Query;

/// A flaw of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListFlaw {
    /// `items` is null.
    NullItems,
    /// `resourceVersion` is missing.
    NoVersion,
    /// The first item occurs twice.
    DuplicateItem,
    /// This number of items is missing at the end, and nothing in the list shows it.
    MissingItems(usize),
    /// The response is a table, which the client did not request.
    Table,
    /// The items have only metadata, which the client did not request.
    MetadataOnly,
    /// The list has another kind.
    OtherKind,
    /// The continue token is that of the request, so the client gets the same page again and again.
    SameContinue,
    /// The page is empty, and its continue token leads to the same page.
    EmptyPage,
    /// `remainingItemCount` has this value.
    RemainingCount(i64),
}

impl ListFlaw {
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::NullItems => "null_items",
            Self::NoVersion => "no_version",
            Self::DuplicateItem => "duplicate_item",
            Self::MissingItems(_) => "missing_items",
            Self::Table => "table",
            Self::MetadataOnly => "metadata_only",
            Self::OtherKind => "other_kind",
            Self::SameContinue => "same_continue",
            Self::EmptyPage => "empty_page",
            Self::RemainingCount(_) => "remaining_count",
        }
    }

    /// Returns the list with its flaw, or `None` if the flaw does not apply to it.
    pub(super) fn spoil(self, body: &[u8], facts: &Facts) -> Option<Bytes> {
        let mut list: Value = serde_json::from_slice(body).ok()?;
        let asked = Query::parse(&facts.query);
        match self {
            Self::NullItems => list["items"] = Value::Null,
            Self::NoVersion => {
                list["metadata"].as_object_mut()?.remove("resourceVersion");
            }
            Self::DuplicateItem => {
                let items = list["items"].as_array_mut()?;
                let first = items.first()?.clone();
                items.push(first);
            }
            Self::MissingItems(count) => {
                let items = list["items"].as_array_mut()?;
                items.truncate(items.len().saturating_sub(count));
            }
            Self::Table => list = table(&list),
            Self::MetadataOnly => {
                for item in list["items"].as_array_mut()? {
                    *item = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                        "metadata": item["metadata"]});
                }
            }
            Self::OtherKind => list["kind"] = "UnexpectedList".into(),
            Self::SameContinue => list["metadata"]["continue"] = asked.get("continue")?.into(),
            Self::EmptyPage => {
                let token = asked.get("continue")?;
                list["items"] = json!([]);
                list["metadata"]["continue"] = token.into();
            }
            Self::RemainingCount(count) => list["metadata"]["remainingItemCount"] = count.into(),
        }
        let mut bytes = serde_json::to_vec(&list).ok()?;
        bytes.push(b'\n');
        Some(bytes.into())
    }
}

fn table(list: &Value) -> Value {
    let items = list["items"].as_array().into_iter().flatten();
    let rows: Vec<Value> = items
        .map(|item| json!({"cells": [item["metadata"]["name"]], "object": {"metadata": item["metadata"]}}))
        .collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": list["metadata"], "rows": rows,
        "columnDefinitions": [{"name": "Name", "type": "string"}]})
}
