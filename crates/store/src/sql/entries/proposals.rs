//! Proposals in the database: read, made, commented and decided.

use crate::sql::connection::DatabaseConnection;
use crate::sql::row::DatabaseRow;
use crate::sql::{self, SqlText};
use outrigger_policy::{MemoryScope, Principal, Scope};

use super::draft::{Body, Draft, Source, What};
use super::look::{self, EntryLookup, ResolvedPath, look, origin};
use super::plan::Editor;
use super::put::{bind_by, bind_origin, json};
use super::rows::{Columns, damaged, key, unsigned, wrong};
use super::usage;
use crate::entries::{
    Attribution, Comment, ContentState, Decision, EntryAddress, Error, NewProposal, Proposal,
    ProposalFilter, ProposalId, Quotas, Settings, Standing,
};
use crate::limits;
use crate::sql::fault;
use crate::sql::integer::number;

macro_rules! proposal_columns {
    () => {
        "p.proposal, p.scope, p.path, p.base, p.bytes, p.digest, p.executable, p.author, p.via, \
         p.at_ms, p.agent, p.session, p.seq, p.labels, p.message, p.content IS NULL, p.redacted, \
         p.standing, p.decided_by, p.decided_at_ms, p.reason, p.revision, p.origin_scope, \
         p.origin_path, p.origin_revision, p.review_by_ms, p.content"
    };
}
const LIST: &str = concat!(
    "SELECT ",
    proposal_columns!(),
    " FROM proposals p WHERE p.scope = $1 AND p.standing <= $2 AND p.proposal < $3 \
     ORDER BY p.proposal DESC LIMIT $4"
);
const ONE: SqlText = SqlText::Apart {
    sqlite: concat!(
        "SELECT ",
        proposal_columns!(),
        " FROM proposals p WHERE p.proposal = $1 \
         AND p.scope IN (SELECT value FROM json_each($2))"
    ),
    postgres: concat!(
        "SELECT ",
        proposal_columns!(),
        " FROM proposals p WHERE p.proposal = $1 \
         AND p.scope IN (SELECT jsonb_array_elements_text(CAST($2 AS JSONB)))"
    ),
};
const CONTENT: &str = "SELECT bytes FROM contents WHERE content = $1";
const COMMENTS: &str =
    "SELECT author, at_ms, text FROM comments WHERE proposal = $1 ORDER BY comment";
const OPEN: &str = "SELECT COUNT(*) FROM proposals WHERE scope = $1 AND standing = 0";
/// The content, if there is one, and what names it.
const PROPOSE: &str = "INSERT INTO contents (bytes) SELECT $19 WHERE $19 IS NOT NULL; \
    INSERT INTO proposals (scope, path, base, standing, bytes, digest, \
    executable, content, author, via, at_ms, agent, session, seq, labels, message, review_by_ms, \
    origin_scope, origin_path, origin_revision) VALUES ($1, $2, $3, 0, $4, $5, $6, \
    CASE WHEN $19 IS NOT NULL THEN (SELECT MAX(content) FROM contents) END, \
    $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18) RETURNING proposal";
const SAID: &str = "SELECT COUNT(*) FROM comments WHERE proposal = $1";
const SAY: &str = "INSERT INTO comments (proposal, author, at_ms, text) VALUES ($1, $2, $3, $4)";
const DECIDE: &str = "UPDATE proposals SET standing = $2, decided_by = $3, decided_at_ms = $4, \
    reason = $5, revision = $6 WHERE proposal = $1";
const SET: &str = "INSERT INTO memory_scopes (scope, settings, set_by, set_at_ms) \
    VALUES ($1, $2, $3, $4) ON CONFLICT (scope) DO UPDATE SET settings = excluded.settings, \
    set_by = excluded.set_by, set_at_ms = excluded.set_at_ms";

fn writing(error: sqlx::Error) -> Error {
    Error::Store(fault::of("writing proposals", error))
}

/// A proposal as its row has it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) proposal: Proposal,
    derived_from: Option<(EntryAddress, u64)>,
    review_by_ms: Option<u64>,
    content: Option<i64>,
}

fn of_row(row: &DatabaseRow) -> Result<Row, Error> {
    let mut columns = Columns::of(row);
    let id = ProposalId(columns.number()?);
    let at = columns.place()?;
    let base = columns.number()?;
    let (bytes, digest, executable) = (columns.number()?, columns.digest()?, columns.take()?);
    let file = digest.map(|digest| (bytes, digest));
    let author = columns.principal()?;
    let by = columns.by()?;
    let kept = columns.kept(file.is_some())?;
    let standing = usize::try_from(columns.number()?).ok();
    let standing = standing.and_then(|number| Standing::ALL.get(number)).copied();
    let standing = standing.ok_or_else(|| damaged("a proposal can't be read"))?;
    let (who, when): (Option<String>, _) = (columns.take()?, columns.maybe_number()?);
    let who = who.map(|who| who.parse::<Principal>());
    let who = who.transpose().map_err(|_| damaged("somebody's name is none"))?;
    let (reason, revision) = (columns.take()?, columns.maybe_number()?);
    let derived_from = columns.origin()?;
    let (review_by_ms, content) = (columns.maybe_number()?, columns.take()?);
    let decided = who.zip(when);
    let proposal = Proposal {
        id,
        at,
        base,
        file,
        executable,
        author,
        by,
        kept,
        standing,
        decided,
        reason,
        revision,
    };
    Ok(Row { proposal, derived_from, review_by_ms, content })
}

pub(crate) async fn list(
    connection: &mut DatabaseConnection,
    scope: &Scope,
    memory_scope: &MemoryScope,
    asked: ProposalFilter,
    before: Option<ProposalId>,
) -> Result<Vec<Proposal>, Error> {
    let rows = sql::query(LIST)
        .bind(key(scope, memory_scope))
        .bind(if asked == ProposalFilter::Open { 0i64 } else { 3 })
        .bind(before.map_or(i64::MAX, |before| number(before.0)))
        .bind(limits::PAGE_PROPOSALS_MAX as i64)
        .fetch_all(connection)
        .await
        .map_err(wrong)?;
    rows.iter().map(|row| of_row(row).map(|found| found.proposal)).collect()
}

/// A proposal that the scope sees.
pub(crate) async fn one(
    connection: &mut DatabaseConnection,
    scope: &Scope,
    id: ProposalId,
) -> Result<Row, Error> {
    let keys: Vec<String> =
        scope.all_memory_scopes().map(|memory_scope| key(scope, &memory_scope)).collect();
    let keys = serde_json::to_string(&keys).expect("names are text");
    let query = sql::query(ONE).bind(number(id.0)).bind(keys);
    let row = query.fetch_optional(connection).await.map_err(wrong)?;
    of_row(&row.ok_or(Error::Absent)?)
}

pub(crate) async fn whole(
    connection: &mut DatabaseConnection,
    scope: &Scope,
    id: ProposalId,
) -> Result<(Proposal, Option<Vec<u8>>, Vec<Comment>), Error> {
    let Row { proposal, content, .. } = one(connection, scope, id).await?;
    if let ContentState::Redacted(redaction) = &proposal.kept {
        return Err(Error::Redacted(Box::new(redaction.clone())));
    }
    let mut bytes = None;
    if let Some(content) = content {
        let query = sql::query_as(CONTENT).bind(content);
        let row: Option<(Vec<u8>,)> =
            query.fetch_optional(&mut *connection).await.map_err(wrong)?;
        bytes = row.map(|(bytes,)| bytes);
    }
    let query = sql::query(COMMENTS).bind(number(id.0));
    let rows = query.fetch_all(connection).await.map_err(wrong)?;
    let comment = |row| {
        let mut columns = Columns::of(row);
        let author = columns.principal()?;
        Ok(Comment { author, at_ms: columns.number()?, text: columns.take()? })
    };
    Ok((proposal, bytes, rows.iter().map(comment).collect::<Result<_, Error>>()?))
}

pub(crate) async fn propose(
    connection: &mut DatabaseConnection,
    quotas: &Quotas,
    editor: Editor<'_>,
    proposed: NewProposal,
) -> Result<ProposalId, Error> {
    let NewProposal { at, base, file } = proposed;
    let resolved = look(connection, editor.scope, &at).await?;
    fits(connection, &resolved, base, file.is_some()).await?;
    let (bytes, origin_of) = (file.as_ref().map_or(0, |file| file.bytes.len()), file.as_ref());
    Error::within("an entry (bytes)", bytes, limits::ENTRY_BYTES_MAX)?;
    origin(connection, editor.scope, origin_of.and_then(|file| file.derived_from.as_ref())).await?;
    let row: (i64,) = sql::query_as(OPEN)
        .bind(at.memory_scope.to_string())
        .fetch_one(&mut *connection)
        .await
        .map_err(wrong)?;
    let open = usize::try_from(row.0).unwrap_or(0) + 1;
    Error::within("a memory scope (open proposals)", open, limits::PROPOSALS_OPEN_MAX)?;

    let (origin, review_by_ms) =
        file.as_ref().map_or((None, None), |file| (file.derived_from.clone(), file.review_by_ms));
    let body = file.map(|file| Body::new(file.bytes, file.executable));
    let taken = (&at, body.as_ref().map(|body| body.bytes));
    usage::propose(connection, quotas, taken, editor.by.session.as_ref()).await?;
    let query = sql::query(PROPOSE)
        .bind(at.memory_scope.to_string())
        .bind(at.path.as_str().to_owned())
        .bind(number(base))
        .bind(bytes as i64)
        .bind(body.as_ref().map(|body| body.digest.to_string()))
        .bind(body.as_ref().is_some_and(|body| body.executable))
        .bind(editor.scope.person().to_string());
    let query = bind_by(query, editor.by).bind(review_by_ms.map(number));
    let query = bind_origin(query, origin.as_ref()).bind(body.and_then(|body| body.new_bytes()));
    let row: (i64,) = query.of().fetch_one(connection).await.map_err(writing)?;
    Ok(ProposalId(unsigned(row.0)?))
}

/// Lets pass what can come to stand at a path.
async fn fits(
    connection: &mut DatabaseConnection,
    resolved: &ResolvedPath,
    base: u64,
    has_file: bool,
) -> Result<(), Error> {
    match (&resolved.found, has_file) {
        (EntryLookup::Folder, _) => return Err(Error::Folder),
        (EntryLookup::Nothing, false) => return Err(Error::Absent),
        (EntryLookup::Nothing | EntryLookup::File { .. }, _) => {}
    }
    if resolved.revision == base {
        Ok(())
    } else {
        Err(resolved.conflict(connection, None).await?)
    }
}

pub(crate) async fn comment(
    connection: &mut DatabaseConnection,
    editor: Editor<'_>,
    id: ProposalId,
    text: &str,
) -> Result<(), Error> {
    one(connection, editor.scope, id).await?;
    Error::within("a comment (bytes)", text.len(), limits::MESSAGE_BYTES_MAX)?;
    let query = sql::query_as(SAID).bind(number(id.0));
    let row: (i64,) = query.fetch_one(&mut *connection).await.map_err(wrong)?;
    let count = usize::try_from(row.0).unwrap_or(0) + 1;
    Error::within("a proposal (comments)", count, limits::COMMENTS_MAX)?;
    let query = sql::query(SAY).bind(number(id.0)).bind(editor.scope.person().to_string());
    let query = query.bind(number(editor.by.at_ms)).bind(text.to_owned());
    query.execute(connection).await.map(drop).map_err(writing)
}

/// Plans what comes of a decision: versions to write, if it is accepted.
pub(crate) async fn plan(
    connection: &mut DatabaseConnection,
    scope: &Scope,
    id: ProposalId,
    decision: &Decision,
) -> Result<Vec<Draft>, Error> {
    let found = one(connection, scope, id).await?;
    let Proposal { at, author, standing, by, base, kept, .. } = &found.proposal;
    if *standing != Standing::Open {
        return Err(Error::Decided { proposal: id, standing: *standing });
    }
    let resolved = look(connection, scope, at).await?;
    let lets = resolved.settings.lets_review(scope, author, by);
    match decision {
        Decision::Withdraw if scope.person() == *author => return Ok(Vec::new()),
        Decision::Withdraw => return Err(Error::NotAuthor),
        Decision::Accept | Decision::Reject { .. } if !lets => return Err(Error::NotReviewer),
        Decision::Reject { reason } => {
            Error::within("a reason (bytes)", reason.len(), limits::MESSAGE_BYTES_MAX)?;
            return Ok(Vec::new());
        }
        Decision::Accept => {}
    }
    if let ContentState::Redacted(redaction) = kept {
        return Err(Error::Redacted(Box::new(redaction.clone())));
    }
    fits(connection, &resolved, *base, found.proposal.file.is_some()).await?;
    let what = match body(connection, &found).await? {
        Some(body) => What::File(body),
        None => What::Gone,
    };
    // Folders that are missing come along in the name of whoever proposed what is in them.
    let draft = |at, revision, what| Draft {
        at,
        revision,
        what,
        replaces: None,
        author: author.clone(),
        by: by.clone(),
        accepted_by: Some(scope.person()),
        derived_from: None,
        review_by_ms: None,
    };
    let mut drafts = match &what {
        What::Gone => Vec::new(),
        What::File(_) | What::Folder => resolved.folders(connection, draft).await?,
    };
    let mut last = draft(at.clone(), resolved.revision + 1, what);
    last.replaces = resolved.origin.clone();
    (last.derived_from, last.review_by_ms) = (found.derived_from, found.review_by_ms);
    drafts.push(last);
    Ok(drafts)
}

async fn body(connection: &mut DatabaseConnection, found: &Row) -> Result<Option<Body>, Error> {
    let Some(content) = found.content else { return Ok(None) };
    let query = sql::query_as(CONTENT).bind(content);
    let (bytes,): (Vec<u8>,) = query.fetch_one(connection).await.map_err(wrong)?;
    let source = Source::Known(content);
    Ok(Some(Body { source, ..Body::new(bytes, found.proposal.executable) }))
}

/// Notes a decision.
pub(crate) async fn decide(
    connection: &mut DatabaseConnection,
    scope: &Scope,
    (id, decision): (ProposalId, &Decision),
    at_ms: u64,
    revision: Option<u64>,
) -> Result<(), Error> {
    let (standing, reason) = match decision {
        Decision::Accept => (1i64, None),
        Decision::Reject { reason } => (2, Some(reason.clone())),
        Decision::Withdraw => (3, None),
    };
    sql::query(DECIDE)
        .bind(number(id.0))
        .bind(standing)
        .bind(scope.person().to_string())
        .bind(number(at_ms))
        .bind(reason)
        .bind(revision.map(number))
        .execute(connection)
        .await
        .map(drop)
        .map_err(writing)
}

/// Sets what holds for a memory scope.
pub(crate) async fn set(
    connection: &mut DatabaseConnection,
    editor: Editor<'_>,
    memory_scope: &MemoryScope,
    settings: &Settings,
) -> Result<(), Error> {
    look::settings(connection, editor.scope, memory_scope).await?;
    if let Some(what) = settings.fault(memory_scope) {
        return Err(Error::Setting { what });
    }
    let Attribution { at_ms, .. } = editor.by;
    sql::query(SET)
        .bind(memory_scope.to_string())
        .bind(json(settings))
        .bind(editor.scope.person().to_string())
        .bind(number(*at_ms))
        .execute(connection)
        .await
        .map(drop)
        .map_err(writing)
}
