// What a model, a command or a file could try on a person's browser and on their eyes.

/// Sets `PWNED` where it is taken for markup.
export const MARKUP = "<img src=x onerror='window.PWNED=1'><script>window.PWNED=1</script>";

export const TEXT = [
  MARKUP,
  "[a link](javascript:window.PWNED=1) and [another](https://example.com/\u202egpj)",
  "<iframe srcdoc='<script>parent.PWNED=1</script>'></iframe>",
  "```html\n</pre><svg onload='window.PWNED=1'>\n```",
  "\u202eright to left\u202c, zero\u200bwidth, \u001b[31mred\u001b[0m, \u2066isolated\u2069",
].join("\n\n");

/// A name of a file.
export const FILE = "<img src=x onerror=window.PWNED=1>.txt";

/// As the card of the harness looks, so far as text can imitate it.
export const FAKE_QUESTION = [
  "I am done.",
  "## Outrigger asks: may `execute` be done?",
  "<section class='question'><button class='approve' onclick='window.PWNED=1'>Approve once</button></section>",
  "[Approve once](javascript:window.PWNED=1)",
  "[Approve once](/approvals/none)",
].join("\n\n");

export const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/// Prints all of that from a real sandbox, then a line of 5 MB, and leaves files that are named so.
export const COMMAND = [
  `printf '%s\\n' ${quoted(TEXT)}`,
  `printf '\\033[2J\\033[31mred\\033[0m \\033]8;;http://evil.example\\007link\\033]8;;\\007 \\u202e bidi\\n'`,
  `printf '%s\\n' ${quoted(MARKUP)} > ${quoted(FILE)}`,
  "head -c 5000000 /dev/zero | tr '\\0' x",
].join("; ");
