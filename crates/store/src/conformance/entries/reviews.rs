//! What every home of reviews must do: nothing that was proposed is there before somebody
//! else accepted it.

use outrigger_policy::{MemoryKind, MemoryScope, Principal};

use super::fixture::{Fixture, by, group, name, on, organisation, own, scope};
use crate::entries::{
    Attribution, ChangeRequest, Decision, DerivativePolicy, EntryAddress, EntryFile,
    EntryPrecondition, Error, NewProposal, ProposalFilter, ProposalId, Reach, Reviews, Settings,
    Standing, Which,
};

async fn propose(
    reviews: &dyn Reviews,
    person: &str,
    at: &EntryAddress,
    base: u64,
    text: Option<&str>,
) -> Result<ProposalId, Error> {
    let proposed = NewProposal { at: at.clone(), base, file: text.map(EntryFile::of) };
    let by = Attribution { message: Some("because".to_owned()), ..by(3_000) };
    reviews.propose(&scope(person), proposed, by).await
}

async fn accept(reviews: &dyn Reviews, person: &str, id: ProposalId) -> String {
    name(&reviews.decide(&scope(person), id, Decision::Accept, 4_000).await)
}

pub(super) async fn a_review(fixture: &Fixture<'_>) {
    let (ada, eve, at) = (scope("ada"), scope("eve"), on(&organisation(), "s/SKILL.md"));
    let memory_scope = organisation();
    assert!(fixture.reviews.settings(&eve, &memory_scope).await.expect("hers too").review);
    let direct = fixture.write(&ada, &at, EntryPrecondition::Absent, "direct").await;
    assert_eq!(name(&direct), "NeedsReview");
    let make = ChangeRequest::MakeFolder { at: on(&memory_scope, "s") };
    assert_eq!(name(&fixture.change(&ada, make).await), "NeedsReview");

    let id = propose(fixture.reviews, "eve", &at, 0, Some("how to wobble")).await.expect("she may");
    assert_eq!(name(&fixture.entries.stat(&ada, &at).await), "Absent", "it waits");
    assert_eq!(fixture.found(&ada, "wobble").await, [""; 0]);
    let open = fixture
        .reviews
        .proposals(&ada, &memory_scope, ProposalFilter::Open, None)
        .await
        .expect("seen");
    assert_eq!(open.iter().map(|proposal| proposal.id).collect::<Vec<_>>(), [id]);
    fixture.reviews.comment(&ada, id, "nice".to_owned(), 3_500).await.expect("it is there");
    let (proposal, file, comments) = fixture.reviews.proposal(&eve, id).await.expect("seen");
    assert_eq!((proposal.base, proposal.standing), (0, Standing::Open));
    assert_eq!(file.as_deref(), Some(b"how to wobble".as_slice()));
    assert_eq!(comments.len(), 1);
    assert_eq!(comments[0].author, Principal::Person("ada".to_owned()));
    assert_eq!(accept(fixture.reviews, "eve", id).await, "NotReviewer", "it is her own");
    let second = propose(fixture.reviews, "ada", &at, 0, Some("another")).await.expect("he may");
    assert_eq!(accept(fixture.reviews, "ada", id).await, "Ok");

    let read = fixture.entries.read(&eve, &at, None).await.expect("it is there");
    assert_eq!(read.bytes, b"how to wobble");
    let version = read.version;
    assert_eq!(version.author, Principal::Person("eve".to_owned()));
    assert_eq!(version.accepted_by, Some(Principal::Person("ada".to_owned())));
    assert_eq!(version.by.message.as_deref(), Some("because"));
    assert_eq!(fixture.found(&ada, "wobble").await.len(), 1);
    assert_eq!(accept(fixture.reviews, "bob", id).await, "Decided");
    assert_eq!(accept(fixture.reviews, "bob", second).await, "Conflict", "the entry moved on");
    let reason = "late".to_owned();
    let rejected = Decision::Reject { reason };
    let told = fixture.reviews.decide(&eve, second, rejected, 5_000).await.expect("she may");
    assert_eq!(told.versions, []);
    let all = fixture
        .reviews
        .proposals(&ada, &memory_scope, ProposalFilter::All, None)
        .await
        .expect("seen");
    let standing: Vec<_> = all.iter().map(|proposal| proposal.standing).collect();
    assert_eq!(standing, [Standing::Rejected, Standing::Accepted]);
    assert_eq!(all[0].decided, Some((Principal::Person("eve".to_owned()), 5_000)));
    assert_eq!((all[0].reason.as_deref(), all[1].revision), (Some("late"), Some(1)));
    let older =
        fixture.reviews.proposals(&ada, &memory_scope, ProposalFilter::All, Some(second)).await;
    assert_eq!(older.expect("seen").len(), 1);

    let gone = propose(fixture.reviews, "eve", &at, 1, None).await.expect("a removal");
    assert_eq!(accept(fixture.reviews, "ada", gone).await, "Ok");
    assert_eq!(name(&fixture.entries.stat(&ada, &at).await), "Absent");
    let why = "a leak".to_owned();
    let (which, reach) = (Which::Revision(1), Reach::Named);
    let redact = ChangeRequest::Redact {
        at: at.clone(),
        which,
        reach,
        derived: DerivativePolicy::Leave,
        why,
    };
    fixture.change(&ada, redact).await.expect("a redaction waits for nobody");
    assert_eq!(name(&fixture.reviews.proposal(&eve, id).await), "Redacted");
}

pub(super) async fn what_is_refused_in_a_review(fixture: &Fixture<'_>) {
    let (ada, eve) = (scope("ada"), scope("eve"));
    let (memory_scope, at) = (group("ops"), on(&group("ops"), "reviewed"));
    let usual = Settings::usual(&memory_scope);
    assert!(!usual.review, "a group trusts its members");
    let settings = Settings { review: true, own: true, ..usual };
    fixture.reviews.set(&ada, &memory_scope, settings.clone(), 1).await.expect("she sees it");
    assert_eq!(
        name(&fixture.write(&ada, &at, EntryPrecondition::Absent, "x").await),
        "NeedsReview"
    );
    assert_eq!(name(&propose(fixture.reviews, "eve", &at, 0, Some("x")).await), "Absent");
    assert_eq!(name(&propose(fixture.reviews, "ada", &at, 1, Some("x")).await), "Conflict");
    assert_eq!(name(&propose(fixture.reviews, "ada", &at, 0, None).await), "Absent");
    let id = propose(fixture.reviews, "ada", &at, 0, Some("x")).await.expect("she may");
    assert_eq!(accept(fixture.reviews, "eve", id).await, "Absent");
    assert_eq!(name(&fixture.reviews.proposal(&eve, id).await), "Absent");
    assert_eq!(name(&fixture.reviews.comment(&eve, id, "x".to_owned(), 1).await), "Absent");
    let hidden = fixture.reviews.proposals(&eve, &memory_scope, ProposalFilter::All, None).await;
    assert_eq!(hidden.expect("nothing is seen"), []);
    let none = ProposalId(u64::MAX >> 1);
    assert_eq!(name(&fixture.reviews.proposal(&ada, none).await), "Absent");
    let withdrawn = fixture.reviews.decide(&scope("bob"), id, Decision::Withdraw, 1).await;
    assert_eq!(name(&withdrawn), "NotAuthor");

    let named = Settings { reviewers: Some("law".to_owned()), ..settings.clone() };
    fixture.reviews.set(&ada, &memory_scope, named, 1).await.expect("she sees it");
    assert_eq!(accept(fixture.reviews, "ada", id).await, "NotReviewer", "she is not in `law`");
    fixture.reviews.set(&ada, &memory_scope, settings, 1).await.expect("she sees it");
    assert_eq!(
        accept(fixture.reviews, "ada", id).await,
        "Ok",
        "her own, which the memory scope allows"
    );
    let second = propose(fixture.reviews, "ada", &at, 1, Some("y")).await.expect("she may");
    let withdrawn = fixture.reviews.decide(&ada, second, Decision::Withdraw, 1).await;
    assert_eq!(withdrawn.expect("it is hers").versions, []);
    assert_eq!(accept(fixture.reviews, "bob", second).await, "Decided");
    let usual = Settings::usual(&memory_scope);
    fixture.reviews.set(&ada, &memory_scope, usual, 1).await.expect("she sees it");

    for (memory_scope, wrong) in [
        (own("ada"), Settings { review: true, ..Settings::usual(&own("ada")) }),
        (own("ada"), Settings { keep_versions: Some(0), ..Settings::usual(&own("ada")) }),
    ] {
        assert_eq!(name(&fixture.reviews.set(&ada, &memory_scope, wrong, 1).await), "Setting");
    }
    let skills = MemoryScope { kind: MemoryKind::Skills, ..group("ops") };
    assert!(!fixture.reviews.settings(&ada, &skills).await.expect("seen").review);
}
