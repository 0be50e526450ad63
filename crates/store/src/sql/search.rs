//! Looking for words in the newest versions.
//!
//! The index knows entries of every memory scope, and the memory scope of each as a word of its
//! own: what the scope does not see is left out by the index itself, before anything is cut, so
//! that it takes nobody's place and hardly any time. Where there are very many candidates, those at
//! the newest paths are compared.

use crate::sql::text_vector::question;
use crate::sql::{self, SqlText};
use std::fmt::Write as _;

use crate::sql::connection::DatabaseConnection;
use outrigger_policy::Scope;

use crate::entries::{EntryAddress, Error, Hit, Search, Words, snippet};
use crate::limits;
use crate::sql::entries::rows::{self, Columns, damaged, key, node_columns, wrong};

/// What has the words, best first: a word in the path counts more.
const SEARCH: SqlText = SqlText::Apart {
    sqlite: concat!(
        "WITH candidates AS (SELECT rowid AS entry, bm25(search, 0.0, 4.0, 1.0) AS score \
         FROM search WHERE search MATCH $1 ORDER BY rowid DESC LIMIT $2), \
         best AS (SELECT entry, score FROM candidates ORDER BY score, entry LIMIT $3) \
         SELECT e.scope, ",
        node_columns!(),
        ", c.bytes FROM best CROSS JOIN entries e ON e.entry = best.entry \
         JOIN contents c ON c.content = e.content ORDER BY best.score, best.entry"
    ),
    postgres: concat!(
        "WITH candidates AS (SELECT entry, \
         -ts_rank('{0.25, 0.25, 0.25, 1.0}', words, CAST($1 AS TSQUERY)) AS score FROM entries \
         WHERE words @@ CAST($1 AS TSQUERY) \
         AND scope IN (SELECT jsonb_array_elements_text(CAST($4 AS JSONB))) \
         ORDER BY entry DESC LIMIT $2), \
         best AS (SELECT entry, score FROM candidates ORDER BY score, entry LIMIT $3) \
         SELECT e.scope, ",
        node_columns!(),
        ", c.bytes FROM best JOIN entries e ON e.entry = best.entry \
         JOIN contents c ON c.content = e.content ORDER BY best.score, best.entry"
    ),
};

/// The word that the index has for a memory scope: as the view of what is searched makes it.
fn word(key: &str) -> String {
    let mut word = String::from("\"x");
    for byte in key.bytes() {
        write!(word, "{byte:02x}").expect("a String takes everything");
    }
    word.push('"');
    word
}

pub(crate) async fn search(
    connection: &mut DatabaseConnection,
    scope: &Scope,
    asked: &Search,
) -> Result<Vec<Hit>, Error> {
    Error::within("a search (bytes)", asked.words.len(), limits::SEARCH_BYTES_MAX)?;
    let words = Words::parse(&asked.words)?;
    let all = || scope.all_memory_scopes().collect();
    let memory_scopes =
        if asked.memory_scopes.is_empty() { all() } else { asked.memory_scopes.clone() };
    let keys: Vec<String> = memory_scopes.iter().map(|it| key(scope, it)).collect();
    let asked_for = if connection.is_postgres() {
        question(&words)
    } else {
        let on: Vec<String> = keys.iter().map(|key| word(key)).collect();
        format!("scope : ({}) AND {{path text}} : ({})", on.join(" OR "), words.expression())
    };
    let rows = sql::query(SEARCH)
        .bind(asked_for)
        .bind(limits::SEARCH_CANDIDATES_MAX as i64)
        .bind(asked.limit.min(limits::SEARCH_HITS_MAX) as i64)
        .bind(serde_json::to_string(&keys).expect("names are text"))
        .fetch_all(connection)
        .await
        .map_err(wrong)?;
    let hit = |row| {
        let mut columns = Columns::of(row);
        let memory_scope = rows::memory_scope(&columns.take::<String>()?)?;
        let (path, node) = columns.node()?;
        let text = String::from_utf8(columns.take()?).map_err(|_| damaged("a text is none"))?;
        Ok(Hit {
            place: EntryAddress { memory_scope, path },
            node,
            snippet: snippet(&text, &words),
        })
    };
    rows.iter().map(hit).collect()
}
