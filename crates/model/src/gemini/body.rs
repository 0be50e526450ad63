//! Writes the body of a request. What came from the model goes back as it came.

use outrigger_agent::{Call, MediaType, Part, Raw, Reply, Status, ToolResult, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeSet;

use super::part::NO_SIGNATURE;
use crate::json::{Fields, arguments_object, assembled};
use crate::picture::Base64;
use crate::render::{Group, PromptPart, PromptText, User, groups};
use crate::wire::written;
use crate::{Api, Endpoint, Purpose, Request};

/// Fields that are written here.
pub(crate) const OWN_FIELDS: &[&str] =
    &["contents", "systemInstruction", "tools", "toolConfig", "generationConfig"];

/// The body of a request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<SystemInstruction<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tools<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig>,
    generation_config: GenerationConfig,
    #[serde(flatten)]
    fields: Fields<'a>,
    contents: Vec<Content<'a>>,
}

#[derive(Serialize)]
struct SystemInstruction<'a> {
    parts: [SystemText<'a>; 1],
}

#[derive(Serialize)]
struct SystemText<'a> {
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<FunctionDeclaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionDeclaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Raw,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig {
    function_calling_config: FunctionCallingConfig,
}

#[derive(Serialize)]
struct FunctionCallingConfig {
    mode: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    max_output_tokens: u64,
}

/// What one side said.
#[derive(Serialize)]
struct Content<'a> {
    role: &'static str,
    parts: Vec<WrittenPart<'a>>,
}

/// A part, as it came from there or as ours.
#[derive(Serialize)]
#[serde(untagged)]
enum WrittenPart<'a> {
    Native(&'a Raw),
    Own(OwnPart<'a>),
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum OwnPart<'a> {
    Said { text: PromptText<'a> },
    Picture { inline_data: InlineData<'a> },
    Text { text: &'a str },
    Call { function_call: FunctionCall<'a>, thought_signature: &'static str },
    Response { function_response: FunctionResponse<'a> },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: MediaType,
    data: Base64<'a>,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    id: &'a str,
    name: &'a str,
    args: Box<RawValue>,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Response<'a> {
    Output(&'a str),
    Error(&'a str),
}

/// The body of a request.
pub(crate) fn body(endpoint: &Endpoint, provider: &str, request: &Request<'_>) -> Vec<u8> {
    let mut contents = Vec::new();
    // The ids that the calls of the last reply have in the request.
    let mut ids = BTreeSet::new();
    for group in groups(request) {
        let (role, parts) = match group {
            Group::User(side) => ("user", user(side, &ids)),
            Group::Reply(reply) => ("model", assistant(endpoint, provider, reply, &mut ids)),
        };
        if !parts.is_empty() {
            contents.push(Content { role, parts });
        }
    }
    let function_declarations: Vec<_> = request.tools.iter().map(declaration).collect();
    let mode = match request.purpose {
        Purpose::Turn => "AUTO",
        Purpose::Compact => "NONE",
    };
    let tools = (!function_declarations.is_empty()).then_some([Tools { function_declarations }]);
    let function_calling_config = FunctionCallingConfig { mode };
    let system = SystemText { text: request.system };
    let body = Body {
        system_instruction: (!request.system.is_empty())
            .then_some(SystemInstruction { parts: [system] }),
        tool_config: tools.as_ref().map(|_| ToolConfig { function_calling_config }),
        tools,
        generation_config: GenerationConfig { max_output_tokens: request.output_tokens_max },
        fields: Fields(&endpoint.body),
        contents,
    };
    written(request, &body)
}

fn declaration(tool: &ToolSpec) -> FunctionDeclaration<'_> {
    let ToolSpec { name, description, schema, .. } = tool;
    FunctionDeclaration { name, description, parameters_json_schema: schema }
}

fn user<'a>(side: User<'a>, ids: &BTreeSet<String>) -> Vec<WrittenPart<'a>> {
    let response = |result: &'a ToolResult| {
        let response = match result.status {
            Status::Ok => Response::Output(&result.text),
            Status::Error | Status::Denied | Status::Unknown => Response::Error(&result.text),
        };
        let id = Some(result.call.as_str()).filter(|id| ids.contains(*id));
        let function_response = FunctionResponse { id, name: &result.tool, response };
        WrittenPart::Own(OwnPart::Response { function_response })
    };
    let said = side.said().map(|said| match said {
        PromptPart::Text(text) => OwnPart::Said { text },
        PromptPart::Picture(picture) => {
            let (mime_type, data) = (picture.media_type, picture.base64());
            OwnPart::Picture { inline_data: InlineData { mime_type, data } }
        }
    });
    side.results().map(response).chain(said.map(WrittenPart::Own)).collect()
}

/// A reply's parts, and the ids that its calls have there: results name no other.
fn assistant<'a>(
    endpoint: &Endpoint,
    provider: &str,
    reply: &'a Reply,
    ids: &mut BTreeSet<String>,
) -> Vec<WrittenPart<'a>> {
    ids.clear();
    if let Some(native) = reply.native_for(Api::Gemini.as_str(), provider, &endpoint.model) {
        ids.extend(native.iter().filter_map(|raw| called(raw.as_str())));
        return native.iter().map(WrittenPart::Native).collect();
    }
    let own = reply.parts.iter().filter_map(|part| match part {
        Part::Text(text) if !text.is_empty() => Some(OwnPart::Text { text }),
        Part::Call(Call { id, name, arguments }) => {
            ids.insert(id.clone());
            let args = assembled(arguments_object(arguments));
            let function_call = FunctionCall { id, name, args };
            Some(OwnPart::Call { function_call, thought_signature: NO_SIGNATURE })
        }
        Part::Text(_) | Part::Thinking(_) | Part::Opaque(_) => None,
    });
    own.map(WrittenPart::Own).collect()
}

/// The id of the call that a part is, if it has one.
fn called(part: &str) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Called {
        function_call: Option<NamedCall>,
    }
    #[derive(Deserialize)]
    struct NamedCall {
        id: Option<String>,
    }
    serde_json::from_str::<Called>(part).ok()?.function_call?.id
}
