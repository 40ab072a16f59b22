use std::cell::RefCell;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};

use super::*;

thread_local! {
    /// Functions to call after a worker has looked at a queue and before it waits. The last one is called first, and
    /// each is called once.
    static MEANWHILE: RefCell<Vec<Box<dyn FnOnce()>>> = RefCell::default();
}

pub(super) fn meanwhile() {
    if let Some(act) = MEANWHILE.with_borrow_mut(Vec::pop) {
        act();
    }
}

type Next = Pin<Box<dyn Future<Output = Option<ItemGuard<u32>>>>>;

fn next(queue: &Arc<SharedQueue<u32>>) -> Next {
    let queue = queue.clone();
    Box::pin(async move { queue.next().await })
}

fn poll(next: &mut Next) -> Poll<Option<ItemGuard<u32>>> {
    next.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn two_items_added_while_two_workers_begin_to_wait_wake_both() {
    let queue = SharedQueue::new(None);
    let (mut first, mut second) = (next(&queue), next(&queue));
    let (adder, (sender, receiver)) = (queue.clone(), mpsc::channel());
    MEANWHILE.with_borrow_mut(|acts| {
        acts.push(Box::new(move || [1, 2].into_iter().for_each(|item| assert!(adder.add(item, Priority::NORMAL)))));
        acts.push(Box::new(move || drop(sender.send(poll(&mut second)))));
    });
    // The first worker looks, then the second one looks, then both items are added, then both workers wait.
    let first = poll(&mut first);
    let second = receiver.recv().unwrap();
    for worker in [first, second] {
        assert!(matches!(worker, Poll::Ready(Some(_))), "a worker waits although an item is there for it");
    }
}
