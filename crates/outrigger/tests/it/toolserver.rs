//! A server of tools that is a program: the older era of the protocol, line by line.

/// Its text in Python. What a call does is Python too: it finds `name` and `params`, and
/// leaves its answer in `text`.
pub(crate) fn python(tools: &[&str], call: &str) -> String {
    let call: String = call.trim().lines().map(|line| format!("        {line}\n")).collect();
    const REST: &str = r#"
import json, os, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    method, id = asked.get("method"), asked.get("id")
    if id is None:
        continue
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "ours", "version": "1"}}
    elif method == "tools/list":
        kind = {"type": "object", "properties": {"text": {"type": "string"}}}
        result = {"tools": [{"name": name, "description": "Does it.", "inputSchema": kind}
                            for name in TOOLS]}
    elif method == "tools/call":
        params = asked["params"]
        name = params["name"]
CALL        result = {"content": [{"type": "text", "text": text}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": id,
                          "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
"#;
    REST.replace("TOOLS", &format!("{tools:?}")).replace("CALL", &call)
}
