//! What programs are told of names (DNS, RFC 1035).
//!
//! Owns the one answer that there is: every name that could be a host's leads to one address,
//! where the gate hears from the program itself which name it meant. Nothing is looked up, so
//! no question leaves the sandbox, and nothing can be carried out in one. Pure.

use outrigger_sandbox::capture;

use crate::limits;

/// Bytes of what stands before the question (4.1.1).
const HEADER_BYTES: usize = 12;
/// Bytes of its type and class (4.1.2).
const KIND_BYTES: usize = 4;
/// Types and classes that are asked for (3.2.2 and 3.2.4).
const ADDRESS_OF_VERSION_4: u16 = 1;
const INTERNET: u16 = 1;
/// The name of the question, where it is said again (4.1.4).
const SAME_NAME: u16 = 0xc000 | HEADER_BYTES as u16;
/// Ends of names that are nobody's on the internet (RFC 6761, 6762) or no host's (RFC 3172).
const NOBODY: [&[u8]; 5] = [b"invalid", b"test", b"local", b"localhost", b"arpa"];

/// What an answer says beside addresses (RCODE, 4.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum ResponseCode {
    NoError = 0,
    FormatError = 1,
    NoSuchName = 3,
    NotImplemented = 4,
}

/// The question of a message.
struct NameQuestion<'a> {
    labels: Vec<&'a [u8]>,
    kind: u16,
    class: u16,
    /// As it stands in the message.
    bytes: &'a [u8],
}

/// The answer to a message. `None`: it is not one that is answered.
pub(super) fn answer(message: &[u8]) -> Option<Vec<u8>> {
    let (header, rest) = message.split_at_checked(HEADER_BYTES)?;
    // Two that answer each other would never end.
    if header[2] & 0x80 != 0 {
        return None;
    }
    let is_query = header[2] & 0x78 == 0;
    let one = header[4..6] == [0, 1];
    let (code, question) = match (is_query, one.then(|| question(rest)).flatten()) {
        (false, _) => (ResponseCode::NotImplemented, None),
        (true, None) => (ResponseCode::FormatError, None),
        (true, Some(question)) => (judge(&question), Some(question)),
    };
    let addressed = question.as_ref().is_some_and(|question| {
        code == ResponseCode::NoError
            && question.kind == ADDRESS_OF_VERSION_4
            && question.class == INTERNET
    });
    let mut answer = Vec::with_capacity(limits::NAME_QUESTION_BYTES_MAX);
    answer.extend_from_slice(&header[..2]);
    // An answer to the same kind of question; recursion as it was asked for, and available.
    answer.push(0x80 | header[2] & 0x79);
    answer.push(0x80 | code as u8);
    let counts = [u16::from(question.is_some()), u16::from(addressed), 0, 0];
    counts.iter().for_each(|count| answer.extend_from_slice(&count.to_be_bytes()));
    answer.extend_from_slice(question.map_or(&[], |question| question.bytes));
    if addressed {
        for word in [SAME_NAME, ADDRESS_OF_VERSION_4, INTERNET] {
            answer.extend_from_slice(&word.to_be_bytes());
        }
        answer.extend_from_slice(&limits::NAME_TTL_S.to_be_bytes());
        let address = capture::ADDRESS.octets();
        answer.extend_from_slice(&(address.len() as u16).to_be_bytes());
        answer.extend_from_slice(&address);
    }
    Some(answer)
}

/// Reads a question: labels with their lengths, an empty one, type and class.
fn question(bytes: &[u8]) -> Option<NameQuestion<'_>> {
    let (mut labels, mut at) = (Vec::new(), 0);
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        match length {
            0 => break,
            // A reference into a message that has nothing before it is none.
            1..=limits::LABEL_BYTES_MAX => labels.push(bytes.get(at..at + length)?),
            _ => return None,
        }
        at += length;
    }
    let kind = bytes.get(at..at + KIND_BYTES)?;
    let word = |at: usize| u16::from_be_bytes([kind[at], kind[at + 1]]);
    let (kind, class) = (word(0), word(2));
    let bytes = &bytes[..at + KIND_BYTES];
    (at <= limits::NAME_BYTES_MAX).then_some(NameQuestion { labels, kind, class, bytes })
}

/// Whether there is such a name.
fn judge(question: &NameQuestion<'_>) -> ResponseCode {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let plain = |label: &&[u8]| label.iter().all(plain) && !label.starts_with(b"-");
    let Some(last) = question.labels.last() else { return ResponseCode::NoSuchName };
    let nobody = NOBODY.iter().any(|end| last.eq_ignore_ascii_case(end));
    // What ends in a number some read as an address.
    let number = last.iter().all(u8::is_ascii_digit);
    if question.labels.len() > 1 && !nobody && !number && question.labels.iter().all(plain) {
        ResponseCode::NoError
    } else {
        ResponseCode::NoSuchName
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AAAA: u16 = 28;

    fn message(name: &str, kind: u16) -> Vec<u8> {
        let mut bytes = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.').filter(|label| !label.is_empty()) {
            bytes.push(label.len() as u8);
            bytes.extend_from_slice(label.as_bytes());
        }
        bytes.push(0);
        bytes.extend_from_slice(&kind.to_be_bytes());
        bytes.extend_from_slice(&INTERNET.to_be_bytes());
        bytes
    }

    /// The code, and the address if there is one.
    fn ask(name: &str, kind: u16) -> (u8, Option<[u8; 4]>) {
        let message = message(name, kind);
        let answer = answer(&message).unwrap();
        assert_eq!(answer[..3], [0xab, 0xcd, 0x81]);
        assert_eq!(answer[12..message.len()], message[12..]);
        let address = (answer[7] == 1).then(|| answer[answer.len() - 4..].try_into().unwrap());
        assert_eq!(answer.len(), message.len() + if address.is_some() { 16 } else { 0 });
        (answer[3] & 0xf, address)
    }

    #[test]
    fn names_of_hosts_lead_to_one_address() {
        for name in ["example.com", "EXAMPLE.com", "a.b.example.co.uk", "_x.example.com", "x1.y2"] {
            assert_eq!(ask(name, ADDRESS_OF_VERSION_4), (0, Some([127, 64, 0, 1])), "{name}");
            // There is such a name, and it has no such address.
            assert_eq!(ask(name, AAAA), (0, None), "{name}");
        }
    }

    #[test]
    fn what_is_no_name_of_a_host_leads_nowhere() {
        for name in [
            "localhost",
            "sandbox",
            "a.invalid",
            "a.test",
            "printer.LOCAL",
            "1.0.0.127.in-addr.arpa",
            "1.2.3.4",
            "a b.com",
            "-a.com",
        ] {
            assert_eq!(ask(name, ADDRESS_OF_VERSION_4), (3, None), "{name}");
        }
        assert_eq!(ask("", ADDRESS_OF_VERSION_4), (3, None));
    }

    #[test]
    fn what_is_no_question_is_told_so_or_nothing() {
        let good = message("example.com", ADDRESS_OF_VERSION_4);
        let mut back = good.clone();
        back[2] |= 0x80;
        assert_eq!(answer(&back), None);
        assert_eq!(answer(&good[..11]), None);
        for end in 12..good.len() {
            assert_eq!(answer(&good[..end]).unwrap()[3] & 0xf, 1, "{end}");
        }
        let mut status = good.clone();
        status[2] = 0x10;
        assert_eq!(answer(&status).unwrap()[3] & 0xf, 4);
        let mut two = good.clone();
        two[5] = 2;
        assert_eq!(answer(&two).unwrap()[3] & 0xf, 1);
        let mut pointer = good.clone();
        pointer[12] = 0xc0;
        assert_eq!(answer(&pointer).unwrap()[3] & 0xf, 1);
        let long = message(&"a.".repeat(128), ADDRESS_OF_VERSION_4);
        assert_eq!(answer(&long).unwrap()[3] & 0xf, 1);
    }
}
