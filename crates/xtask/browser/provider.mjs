// A certified OpenID provider on this machine, where everybody has an account whose name they say.
import http from "node:http";
import Provider from "oidc-provider";

const CLIENT = "outrigger";
const SECRET = "browser-0123456789-abcdefghij";
const GROUPS = { ada: ["/platform"], bob: ["/people"], eve: [] };

export class AccountProvider {
  /// Listens, so that a world can be told where; answers once a server is there.
  static async begin(world) {
    const server = http.createServer();
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${server.address().port}`;
    world.variables.OIDC_SECRET = SECRET;
    world.configure(`[oidc]
name = "Acme"
issuer = "${url}"
client_id = "${CLIENT}"
client_secret_env = "OIDC_SECRET"
scopes = ["email", "groups"]
allow_groups = ["/people"]
groups = { "/platform" = ["admin"] }
`);
    return new AccountProvider(server, url);
  }

  constructor(server, url) {
    Object.assign(this, { server, url });
  }

  /// Knows the server that people come from.
  serve(at) {
    const provider = new Provider(this.url, {
      clients: [{ client_id: CLIENT, client_secret: SECRET, redirect_uris: [`${at}/login/oidc`] }],
      claims: { openid: ["sub"], email: ["email", "email_verified"], groups: ["groups"] },
      findAccount: (_, id) => ({
        accountId: id,
        claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true, groups: GROUPS[id] ?? [] }),
      }),
    });
    this.server.on("request", provider.callback());
  }

  end() {
    this.server.closeAllConnections();
    this.server.close();
  }
}
