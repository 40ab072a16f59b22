//! The order of a list that is merged from two lists.

/// One item of the merged list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pick {
    /// Only in the old list, at this index.
    Old(usize),
    /// In the new list, and possibly in the old one: the item with this number.
    New(usize),
}

/// Returns the order of the merged list. Each list is given by the numbers of its items. Equal items have the same
/// number, and the new list has no duplicates.
///
/// The items of the new list keep its order. The others stay near their neighbours in the old list.
pub(super) fn weave(old: &[usize], new: &[usize]) -> Vec<Pick> {
    let in_old = Flags::of(old);
    let weave = Weave {
        old,
        new,
        old_at: 0,
        new_at: 0,
        in_new: Flags::of(new),
        picked: Flags::default(),
        shared: new.iter().copied().filter(|number| in_old.get(*number)).collect::<Vec<_>>().into_iter(),
        due: None,
        picks: Vec::with_capacity(old.len().max(new.len())),
    };
    weave.run()
}

/// A boolean for each number; false by default.
#[derive(Default)]
struct Flags(Vec<bool>);

impl Flags {
    fn of(numbers: &[usize]) -> Self {
        let mut flags = Self::default();
        numbers.iter().for_each(|number| flags.set(*number));
        flags
    }

    fn get(&self, number: usize) -> bool {
        self.0.get(number).copied().unwrap_or(false)
    }

    fn set(&mut self, number: usize) {
        if self.0.len() <= number {
            self.0.resize(number + 1, false);
        }
        if let Some(flag) = self.0.get_mut(number) {
            *flag = true;
        }
    }
}

struct Weave<'n> {
    old: &'n [usize],
    new: &'n [usize],
    old_at: usize,
    new_at: usize,
    in_new: Flags,
    /// The items of the new list that were taken.
    picked: Flags,
    /// The items of both lists that are not due yet, in the order of the new list.
    shared: std::vec::IntoIter<usize>,
    /// The item of both lists that is due next.
    due: Option<usize>,
    picks: Vec<Pick>,
}

impl Weave<'_> {
    fn run(mut self) -> Vec<Pick> {
        self.due = self.shared.next();
        while self.old_at < self.old.len() || self.new_at < self.new.len() {
            self.step();
        }
        self.picks
    }

    fn step(&mut self) {
        let (old, new) = (self.old.get(self.old_at).copied(), self.new.get(self.new_at).copied());
        if let (Some(old), Some(new)) = (old, new) {
            if old == new {
                self.pick_new(new);
                self.old_at += 1;
                self.due = self.shared.next();
                return;
            }
            // The item is in both lists, but another is due first. It is taken when the new list reaches it.
            if self.in_new.get(old) && self.due.is_some_and(|due| due != old) {
                self.old_at += 1;
                return;
            }
        }
        if let Some(old) = old {
            if !self.in_new.get(old) {
                self.picks.push(Pick::Old(self.old_at));
                self.old_at += 1;
                return;
            }
            self.old_at += usize::from(self.picked.get(old));
        }
        if let Some(new) = new {
            self.pick_new(new);
            if self.due == Some(new) {
                self.due = self.shared.next();
            }
        }
    }

    fn pick_new(&mut self, new: usize) {
        self.picked.set(new);
        self.picks.push(Pick::New(new));
        self.new_at += 1;
    }
}
