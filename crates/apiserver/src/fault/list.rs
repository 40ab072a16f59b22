//! Flaws of a list that is otherwise answered with 200.

use bytes::Bytes;
use serde_json::{Value, json};

use super::Facts;
use crate::message::query::Query;

/// What is wrong with a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListFlaw {
    /// `items` is null.
    NullItems,
    /// There is no `resourceVersion`.
    NoVersion,
    /// The first item is there twice.
    DuplicateItem,
    /// So many of the last items are missing, and nothing says so.
    MissingItems(usize),
    /// It is a table, which the client did not request.
    Table,
    /// Its items are metadata only, which the client did not request.
    MetadataOnly,
    /// It is a list of another kind.
    OtherKind,
    /// The continue token is the one that was sent, so the same page comes again and again.
    SameContinue,
    /// A page is empty, with a continue token that leads to it again.
    EmptyPage,
    /// `remainingItemCount` is this.
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

    /// The list with its flaw, or `None` if it has nothing to be spoilt.
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
