//! Resources that were compiled from CRDs before they are needed.

use parking_lot::Mutex;
use serde_json::Value;
use std::collections::VecDeque;

use crate::kinds::Resource;

/// How many compiled CRDs are kept, from a write to the work that follows it. A missing one is compiled again.
const READY: usize = 32;

/// Resources compiled from CRDs before the state is locked, because compiling can take long. Each is kept with its
/// spec.
#[derive(Debug, Default)]
pub(crate) struct CompiledResources(Mutex<VecDeque<(Value, Vec<Resource>)>>);

impl CompiledResources {
    pub(crate) fn put(&self, spec: &Value, resources: Vec<Resource>) {
        let ready = (spec.clone(), resources);
        let mut all = self.0.lock();
        all.push_back(ready);
        if all.len() > READY {
            all.pop_front();
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }

    pub(crate) fn take(&self, spec: &Value) -> Option<Vec<Resource>> {
        let mut all = self.0.lock();
        let at = all.iter().position(|(of, _)| of == spec)?;
        all.remove(at).map(|(_, resources)| resources)
    }
}
