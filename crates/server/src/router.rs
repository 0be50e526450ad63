//! Every address of the server, and what each request passes before it is answered.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::HeaderValue;
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Response;
use axum::routing::get;
use outrigger_api::ProblemCode;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::page::Files;
use crate::sandboxes::{execs, snapshots};
use crate::{
    RequestError, Server, agents, approvals, audit, budgets, changes, checkpoints, device, egress,
    events, files, journal, limits, login, memory, metrics, page, people, pictures, proposals,
    redaction, requests, rules, sandboxes, secrets, sessions, sign_in, skills, workspaces,
};

/// What stands above the generated parts of the document.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Outrigger",
        description = "Sessions of agents: opened, followed, answered. Times are milliseconds since 1970 in UTC; money is in billionths of a dollar. A client passes over fields and kinds that it does not know.",
    ),
    components(schemas(
        outrigger_api::SessionEvent,
        outrigger_api::LiveFrame,
        outrigger_api::PresenceFrame,
        outrigger_api::RemovedFrame,
        outrigger_api::ApprovalList,
        outrigger_api::OutputFrame,
        outrigger_api::ProblemDetails,
        outrigger_api::ProblemCode,
    )),
    security(("bearer" = []), ("cookie" = [])),
    modifiers(&Schemes),
)]
struct Head;

struct Schemes;

impl utoipa::Modify for Schemes {
    fn modify(&self, document: &mut Document) {
        use utoipa::openapi::security::{
            ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme,
        };
        let components = document.components.get_or_insert_default();
        let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        components.add_security_scheme("bearer", bearer);
        let cookie = SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::new("outrigger")));
        components.add_security_scheme("cookie", cookie);
    }
}

fn api() -> OpenApiRouter<Server> {
    OpenApiRouter::with_openapi(Head::openapi())
        .routes(routes!(sessions::server))
        .routes(routes!(sessions::list, sessions::create))
        .routes(routes!(sessions::one, sessions::remove))
        .routes(routes!(sessions::say))
        .routes(routes!(sessions::interrupt))
        .routes(routes!(sessions::resume))
        .routes(routes!(sessions::compact))
        .routes(routes!(sessions::cancel))
        .routes(routes!(events::list))
        .routes(routes!(pictures::one))
        .routes(routes!(events::follow))
        .routes(routes!(events::all))
        .routes(routes!(journal::page))
        .routes(routes!(workspaces::upload))
        .routes(routes!(changes::all))
        .routes(routes!(changes::patch))
        .routes(routes!(changes::archive))
        .routes(routes!(changes::objects))
        .routes(routes!(changes::apply))
        .routes(routes!(audit::verify))
        .routes(routes!(files::folder))
        .routes(routes!(files::file))
        .routes(routes!(checkpoints::list))
        .routes(routes!(checkpoints::fork))
        .routes(routes!(checkpoints::rewind))
        .routes(routes!(approvals::list))
        .routes(routes!(approvals::one, approvals::answer))
        .routes(routes!(memory::list))
        .routes(routes!(memory::content, memory::write, memory::remove))
        .routes(routes!(memory::revert))
        .routes(routes!(redaction::redact))
        .routes(routes!(memory::history))
        .routes(routes!(memory::diff))
        .routes(routes!(memory::blame))
        .routes(routes!(memory::search))
        .routes(routes!(proposals::list))
        .routes(routes!(proposals::one, proposals::answer))
        .routes(routes!(proposals::comment))
        .routes(routes!(skills::list))
        .routes(routes!(agents::list))
        .routes(routes!(agents::write))
        .routes(routes!(budgets::list))
        .routes(routes!(budgets::set))
        .routes(routes!(metrics::scrape))
        .routes(routes!(people::share))
        .routes(routes!(people::list))
        .routes(routes!(egress::list))
        .routes(routes!(rules::list))
        .routes(routes!(rules::explain))
        .routes(routes!(rules::effect))
        .routes(routes!(secrets::list))
        .routes(routes!(secrets::set, secrets::revoke))
        .routes(routes!(secrets::rotate))
        .merge(sandboxes())
        .routes(routes!(login::logout))
        .routes(routes!(device::one, device::answer))
}

/// Sandboxes that people drive themselves.
fn sandboxes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(sandboxes::list, sandboxes::create))
        .routes(routes!(sandboxes::one, sandboxes::remove))
        .routes(routes!(sandboxes::suspend))
        .routes(routes!(sandboxes::network::set))
        .routes(routes!(sandboxes::network::egress))
        .routes(routes!(execs::run))
        .routes(routes!(execs::one))
        .routes(routes!(execs::follow))
        .routes(routes!(execs::input))
        .routes(routes!(execs::kill))
        .routes(routes!(sandboxes::files::folder, sandboxes::files::remove))
        .routes(routes!(sandboxes::files::info))
        .routes(routes!(sandboxes::files::make_folder))
        .routes(routes!(sandboxes::files::rename))
        .routes(routes!(sandboxes::files::read, sandboxes::files::write))
        .routes(routes!(sandboxes::archive::read, sandboxes::archive::write))
        .routes(routes!(sandboxes::terminal::open))
        .routes(routes!(snapshots::take))
        .routes(routes!(snapshots::list))
        .routes(routes!(snapshots::remove))
        .routes(routes!(snapshots::fork))
        .routes(routes!(snapshots::templates))
}

/// What nobody has to be logged in for.
fn open_api() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(device::begin))
        .routes(routes!(device::poll))
        .routes(routes!(agents::deliver))
        .routes(routes!(sign_in::ways))
}

/// The contract as an OpenAPI document, in JSON.
#[must_use]
pub fn openapi() -> String {
    let (_, document) = api().merge(open_api()).split_for_parts();
    let text = document.to_pretty_json();
    spelled(&text.expect("a document of plain data can always be written")) + "\n"
}

/// With the formats of whole numbers without a sign as the registry of OpenAPI has them: `uint64`
/// and not `u-int64`, which utoipa writes.
fn spelled(document: &str) -> String {
    document.replace("\"u-int", "\"uint")
}

/// All addresses.
pub(crate) fn router(server: Server) -> Router {
    let (api, _) = api().split_for_parts();
    let (open_api, _) = open_api().split_for_parts();
    let document = openapi();
    let json = HeaderValue::from_static("application/json");
    let document = move || async move { ([(axum::http::header::CONTENT_TYPE, json)], document) };
    let open = Router::new()
        .route("/login", get(login::login))
        .route(sign_in::BEGIN, get(sign_in::begin))
        .route(sign_in::RETURN, get(sign_in::end))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/openapi.json", get(document));
    let pages = Router::new()
        .route("/", get(page::index))
        .route("/new", get(page::index))
        .route("/sessions/{id}", get(page::session))
        .route("/approvals", get(page::index))
        .route("/approvals/{id}", get(page::index))
        .route("/agents", get(page::index))
        .route("/memory", get(page::index))
        .route("/memory/{*path}", get(page::index))
        .route("/budgets", get(page::index))
        .route("/sandboxes", get(page::index))
        .route("/sandboxes/{id}", get(page::index))
        .route("/people", get(page::index))
        .route("/rules", get(page::index))
        .route("/secrets", get(page::index))
        .route("/device", get(page::index))
        .route("/ui/{*path}", get(page::file))
        .route("/favicon.ico", get(page::favicon))
        .fallback(page::unknown)
        .with_state(Files::compress());
    api.route_layer(from_fn_with_state(server.clone(), login::admit))
        .merge(open_api)
        .route_layer(from_fn_with_state(server.clone(), metrics::count))
        .merge(open)
        .with_state(server.clone())
        .merge(pages)
        .method_not_allowed_fallback(async || {
            RequestError::new(ProblemCode::MethodNotAllowed, "this address takes no such method")
        })
        .layer(DefaultBodyLimit::max(limits::REQUEST_BYTES_MAX))
        .layer(from_fn_with_state(server.clone(), login::of_ours))
        .layer(from_fn_with_state(server, requests::observe))
        .layer(map_response(async |mut response: Response| {
            for (name, value) in page::HEADERS {
                response.headers_mut().insert(name, value);
            }
            response
        }))
}

/// Whether the store answers, and the rules and people can be read: while they can't, nobody is
/// let do anything.
async fn ready(
    axum::extract::State(server): axum::extract::State<Server>,
) -> Result<&'static str, RequestError> {
    server.parts.journal.sessions(None, 1).await?;
    server.parts.host.access()?;
    Ok("ready\n")
}
