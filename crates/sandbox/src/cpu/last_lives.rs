//! What sandboxes wanted in the lives that they had before: who ends its own life does not
//! begin anew by it.

use std::collections::BTreeMap;
use std::time::Instant;

use super::{Demand, Priority};
use crate::{SandboxId, limits};

/// What those wanted whose life ended while they came after others, and when that was.
#[derive(Debug, Default)]
pub struct LastLives(BTreeMap<SandboxId, (Demand, Instant)>);

impl LastLives {
    /// The life of one ended that wanted this.
    pub fn ended(&mut self, id: &SandboxId, wanted: Demand) {
        self.0.retain(|_, (_, ended)| looks(*ended) < limits::LOWEST_LOOKS);
        if wanted.priority() > Priority::Usual {
            self.0.insert(id.clone(), (wanted, Instant::now()));
        }
    }

    /// What one wants that begins another life, if it still comes after others for what it
    /// did before.
    pub fn begins(&mut self, id: &SandboxId) -> Option<Demand> {
        let (wanted, ended) = self.0.remove(id)?;
        let wanted = wanted.next_life(looks(ended));
        (wanted.priority() > Priority::Usual).then_some(wanted)
    }

    /// One is gone, and whoever has its name next is another.
    pub fn forget(&mut self, id: &SandboxId) {
        self.0.remove(id);
    }
}

/// Looks that there were since then.
fn looks(since: Instant) -> u32 {
    let looks = since.elapsed().as_millis() / u128::from(limits::DEMAND_LOOK_MS);
    u32::try_from(looks).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_came_after_others_are_remembered_once() {
        let id = SandboxId::new("one").unwrap();
        let mut lives = LastLives::default();
        lives.ended(&id, Demand::fresh());
        assert_eq!(lives.begins(&id), None);
        lives.ended(&id, Demand::known(Priority::Lowest));
        assert_eq!(lives.begins(&id).map(Demand::priority), Some(Priority::Lowest));
        assert_eq!(lives.begins(&id), None);
        lives.ended(&id, Demand::known(Priority::Low));
        lives.forget(&id);
        assert_eq!(lives.begins(&id), None);
    }
}
