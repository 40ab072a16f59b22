//! Negative indexes in the paths of JSON patches count from the end of a list, as in kube-apiserver.

use json_patch::jsonptr::{Pointer, PointerBuf};
use json_patch::{AddOperation, CopyOperation, MoveOperation, PatchOperation};
use json_patch::{RemoveOperation, ReplaceOperation, TestOperation};
use serde_json::Value;
use std::borrow::Cow;

/// Returns the operation with negative indexes replaced.
pub(super) fn counted<'a>(operation: &'a PatchOperation, object: &Value) -> Cow<'a, PatchOperation> {
    use PatchOperation::{Add, Copy, Move, Remove, Replace, Test};
    let from = match operation {
        Copy(copy) => Some(&copy.from),
        Move(moved) => Some(&moved.from),
        _ => None,
    };
    if !may_be_negative(operation.path()) && !from.is_some_and(|from| may_be_negative(from)) {
        return Cow::Borrowed(operation);
    }
    let there = |path: &Pointer| resolve(path, object, Walk::default());
    let new = |path: &Pointer| resolve(path, object, Walk { adds: true, gone: None });
    Cow::Owned(match operation {
        Add(add) => Add(AddOperation { path: new(&add.path), value: add.value.clone() }),
        Remove(remove) => Remove(RemoveOperation { path: there(&remove.path) }),
        Replace(replace) => Replace(ReplaceOperation { path: there(&replace.path), value: replace.value.clone() }),
        Test(test) => Test(TestOperation { path: there(&test.path), value: test.value.clone() }),
        Copy(copy) => Copy(CopyOperation { from: there(&copy.from), path: new(&copy.path) }),
        Move(moved) => {
            let from = there(&moved.from);
            let path = resolve(&moved.path, object, Walk { adds: true, gone: item_of(&from) });
            Move(MoveOperation { path, from })
        }
    })
}

/// What a path walk needs beside the object.
#[derive(Default)]
struct Walk<'a> {
    /// Whether the path ends at a new entry. A list then has one more valid index.
    adds: bool,
    /// The list and the index in it that a move has removed before.
    gone: Option<(&'a str, usize)>,
}

fn resolve(path: &Pointer, object: &Value, walk: Walk<'_>) -> PointerBuf {
    let (mut place, mut done) = (Some(object), String::new());
    let mut steps = path.as_str().split('/').skip(1).peekable();
    while let Some(step) = steps.next() {
        let mut next = Cow::Borrowed(step);
        match place {
            Some(Value::Array(items)) => {
                let gone = walk.gone.filter(|(list, _)| *list == done).map(|(_, index)| index);
                let added = usize::from(walk.adds && steps.peek().is_none());
                let length = (items.len() + added).saturating_sub(usize::from(gone.is_some()));
                let back = step.strip_prefix('-').and_then(|digits| digits.parse::<usize>().ok());
                if let Some(index) = back.and_then(|back| length.checked_sub(back)) {
                    next = index.to_string().into();
                }
                let index = next.parse::<usize>().ok();
                let index = index.map(|index| index + usize::from(gone.is_some_and(|gone| gone <= index)));
                place = index.and_then(|index| items.get(index));
            }
            Some(Value::Object(members)) => place = members.get(&step.replace("~1", "/").replace("~0", "~")),
            _ => place = None,
        }
        done.push('/');
        done.push_str(&next);
    }
    PointerBuf::parse(done).unwrap_or_else(|_| path.to_buf())
}

fn item_of(path: &Pointer) -> Option<(&str, usize)> {
    let (list, index) = path.as_str().rsplit_once('/')?;
    Some((list, index.parse().ok()?))
}

fn may_be_negative(path: &Pointer) -> bool {
    path.as_str().contains("/-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(operation: Value, expected: Value) {
        let operation: PatchOperation = serde_json::from_value(operation).unwrap();
        let mut object = json!({"l": [1, 2, 3], "o": {"-1": 0}});
        let operation = counted(&operation, &object).into_owned();
        match json_patch::patch(&mut object, &[operation]) {
            Ok(()) => assert_eq!(object, expected),
            Err(_) => assert_eq!(expected, Value::Null),
        }
    }

    #[test]
    fn negative_indexes_count_from_the_end() {
        let list = |list: Value| json!({"l": list, "o": {"-1": 0}});
        check(json!({"op": "remove", "path": "/l/-1"}), list(json!([1, 2])));
        check(json!({"op": "replace", "path": "/l/-3", "value": 9}), list(json!([9, 2, 3])));
        check(json!({"op": "add", "path": "/l/-1", "value": 9}), list(json!([1, 2, 3, 9])));
        check(json!({"op": "add", "path": "/l/-4", "value": 9}), list(json!([9, 1, 2, 3])));
        check(json!({"op": "copy", "from": "/l/-3", "path": "/l/-"}), list(json!([1, 2, 3, 1])));
        check(json!({"op": "move", "from": "/l/0", "path": "/l/-1"}), list(json!([2, 3, 1])));
        check(json!({"op": "test", "path": "/l/-4", "value": 1}), Value::Null);
        check(json!({"op": "remove", "path": "/o/-1"}), json!({"l": [1, 2, 3], "o": {}}));
    }
}
