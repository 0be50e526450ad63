//! Much data in and out, in pieces, to the byte.

use std::collections::BTreeMap;
use tokio::task::JoinSet;

use crate::conformance::case::cases;
use crate::conformance::context::{Context, Outcome, ensure, id, same, text, write_op};
use outrigger_sandbox::{FileOp, FileReply, WriteMode, limits, text::digest};

cases! { "transfer":
    hundred_megabytes_in_and_out,
    ten_thousand_files_in_and_out,
    hundred_megabytes_of_a_command [Programs],
    ten_thousand_files_of_a_command [Programs],
}

/// Pieces of the large file.
const PIECES: usize = 25;
/// Files of the large tree, and how many are on their way at once.
const FILES: usize = 10_000;
const AT_ONCE: usize = 8;

/// A piece whose bytes tell its number and their place.
fn piece(number: usize) -> Vec<u8> {
    let words = limits::FILE_CHUNK_BYTES_MAX / 8;
    let mut bytes = Vec::new();
    let mut word = number as u64 + 1;
    for _ in 0..words {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes
}

async fn hundred_megabytes_in_and_out(context: Context) -> Outcome {
    for number in 0..PIECES {
        let mode = if number == 0 { WriteMode::Create } else { WriteMode::Append };
        context.files(write_op(&format!("w{number}"), "large", &piece(number), mode)).await?;
    }
    for number in 0..PIECES {
        let bytes_max = limits::FILE_CHUNK_BYTES_MAX;
        let op =
            FileOp::Read { path: "large".to_owned(), offset: number as u64 * bytes_max, bytes_max };
        let FileReply::Bytes { bytes, total_bytes } = context.files(op).await? else {
            return Err("read gave no bytes".to_owned());
        };
        same("size", total_bytes, PIECES as u64 * bytes_max)?;
        ensure(&format!("piece {number} is another"), bytes == piece(number))?;
    }
    Ok(())
}

fn path_of(number: usize) -> String {
    format!("d{:02}/s{}/f{number}", number % 100, number % 7)
}

fn contents_of(number: usize) -> Vec<u8> {
    format!("file {number}\n").repeat(number % 13).into_bytes()
}

async fn ten_thousand_files_in_and_out(context: Context) -> Outcome {
    let mut all = JoinSet::new();
    for lane in 0..AT_ONCE {
        let context = context.clone();
        all.spawn(async move {
            for number in (lane..FILES).step_by(AT_ONCE) {
                let op = write_op(
                    &format!("w{number}"),
                    &path_of(number),
                    &contents_of(number),
                    WriteMode::Create,
                );
                context.files(op).await?;
            }
            Ok::<_, String>(())
        });
    }
    while let Some(lane) = all.join_next().await {
        lane.map_err(|error| error.to_string())??;
    }
    let listed = context.manifest().await?;
    let got: BTreeMap<_, _> = listed.into_iter().map(|entry| (entry.path, entry.digest)).collect();
    same("files", got.len(), FILES)?;
    for number in 0..FILES {
        let expected = Some(digest(&contents_of(number)));
        same(&path_of(number), got.get(&path_of(number)).copied().flatten(), expected)?;
    }
    for number in (0..FILES).step_by(97) {
        context.holds(&path_of(number), &contents_of(number)).await?;
    }
    context.remove("r", "d00").await
}

async fn hundred_megabytes_of_a_command(context: Context) -> Outcome {
    for number in 0..PIECES {
        let mode = if number == 0 { WriteMode::Create } else { WriteMode::Append };
        context.files(write_op(&format!("w{number}"), "large", &piece(number), mode)).await?;
    }
    let line = "mv large moved; wc -c < moved; sha256sum < moved | cut -c 1-64";
    let shown = text(&context.shell("a", line).await?.stdout);
    let listed = context.manifest().await?;
    let entry = listed.iter().find(|entry| entry.path == "moved").ok_or("it is not listed")?;
    let digest = entry.digest.ok_or("it has no digest")?.0;
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    same("as the command sees it", shown, format!("{}\n{hex}\n", entry.bytes))
}

async fn ten_thousand_files_of_a_command(context: Context) -> Outcome {
    let line = "i=0; while [ $i -lt 10000 ]; do d=d$((i % 50)); [ -d $d ] || mkdir $d; \
                echo $i > $d/$i; i=$((i+1)); done";
    same("exit", context.shell("a", line).await?.exit_code(), Some(0))?;
    let listed = context.manifest().await?;
    same("files", listed.len(), FILES)?;
    for entry in &listed {
        let name = entry.path.rsplit('/').next().unwrap_or_default();
        let expected = Some(digest(format!("{name}\n").as_bytes()));
        same(&entry.path, entry.digest, expected)?;
    }
    context.files(FileOp::Remove { id: id("r"), path: "d0".to_owned() }).await.map(drop)
}
