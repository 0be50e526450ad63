//! What a person, or a rule, said to hosts that a sandbox asked for.
//!
//! Owns how long each answer holds. Pure; nothing of it is kept beyond the process: what holds
//! for the session stands in its words.

use outrigger_engine::EgressAnswer;
use outrigger_gate::{Destination, Grant};

/// The answers of one sandbox.
#[derive(Debug, Clone, Default)]
pub(super) struct HostAnswers {
    granted: Vec<(EgressAnswer, Vec<Grant>)>,
    declined: Vec<Destination>,
    /// What rules permit that nobody named, and what they forbid.
    ruled: (Vec<Grant>, Vec<Destination>),
    /// What the model was not told yet.
    untold: Vec<String>,
}

impl HostAnswers {
    /// Adds one. `host` is in the words of `--net`, which grant this.
    pub(super) fn add(&mut self, host: &str, mut grants: Vec<Grant>, answer: EgressAnswer) {
        let how_long = match answer {
            EgressAnswer::Once => "for this command alone",
            EgressAnswer::Session => "for this session",
            EgressAnswer::No => {
                self.declined.extend(grants.into_iter().map(destination));
                return;
            }
        };
        if answer == EgressAnswer::Once {
            grants.iter_mut().for_each(|grant| grant.name = format!("{host}, once"));
        }
        self.granted.push((answer, grants));
        self.untold.push(format!("the person allowed {host} {how_long}"));
    }

    /// A rule permits what these grants are, without asking.
    pub(super) fn permit(&mut self, mut grants: Vec<Grant>) {
        grants.iter_mut().for_each(|grant| grant.name.push_str(", by rule"));
        self.ruled.0.extend(grants);
    }

    /// A rule forbids what these grants are.
    pub(super) fn forbid(&mut self, grants: Vec<Grant>) {
        self.ruled.1.extend(grants.into_iter().map(destination));
    }

    /// What is granted beside the session's words.
    pub(super) fn grants(&self) -> impl Iterator<Item = Grant> {
        let by_person = self.granted.iter().flat_map(|(_, grants)| grants);
        by_person.chain(&self.ruled.0).cloned()
    }

    /// What is not asked again.
    pub(super) fn declined(&self) -> Vec<Destination> {
        [&self.declined[..], &self.ruled.1].concat()
    }

    /// Has something told beside what was allowed.
    pub(super) fn note(&mut self, sentences: &[String]) {
        self.untold.extend_from_slice(sentences);
    }

    /// What is to be told, a sentence each.
    pub(super) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.untold)
    }

    /// A command ended. Whether anything ends with it.
    pub(super) fn end_command(&mut self) -> bool {
        let before = self.granted.len();
        self.granted.retain(|(answer, _)| *answer != EgressAnswer::Once);
        self.granted.len() != before
    }

    /// What still holds when the session's words changed: they say all that may be reached.
    pub(super) fn under_other_words(self) -> Self {
        Self { granted: Vec::new(), ..self }
    }

    /// The rules say something else now.
    pub(super) fn forget_ruled(&mut self) {
        self.ruled = Default::default();
    }
}

fn destination(Grant { host, port, .. }: Grant) -> Destination {
    // A URL has an address of version 6 in brackets.
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    Destination { host, port }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_gate::grant_of;

    fn names(answers: &HostAnswers) -> Vec<String> {
        answers.grants().map(|grant| format!("{}:{}", grant.name, grant.port)).collect()
    }

    #[test]
    fn each_answer_holds_for_as_long_as_was_said() {
        let mut answers = HostAnswers::default();
        let mut add = |host, answer| answers.add(host, grant_of(host).unwrap(), answer);
        add("a.test:8443", EgressAnswer::Once);
        add("b.test", EgressAnswer::Session);
        add("c.test", EgressAnswer::No);
        let once = "a.test:8443, once:8443".to_owned();
        let session = ["b.test:443".to_owned(), "b.test:80".to_owned()];
        assert_eq!(names(&answers), [&[once.clone(), once][..], &session].concat());
        assert_eq!(answers.take_notes().len(), 2);
        assert!(answers.take_notes().is_empty(), "each is told once");
        assert!(answers.end_command() && !answers.end_command());
        assert_eq!(names(&answers), session);
        let ports: Vec<u16> = answers.declined().iter().map(|declined| declined.port).collect();
        assert_eq!(ports, [443, 80]);
        let mut answers = answers.under_other_words();
        assert_eq!((names(&answers).len(), answers.declined().len()), (0, 2));
        answers.permit(grant_of("d.test:1").unwrap());
        answers.forbid(grant_of("e.test:1").unwrap());
        assert_eq!(names(&answers)[0], "d.test:1, by rule:1");
        assert_eq!(answers.declined().len(), 4, "over HTTPS and HTTP");
        answers.forget_ruled();
        assert_eq!((names(&answers).len(), answers.declined().len()), (0, 2));
    }
}
