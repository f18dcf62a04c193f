// A fake identity provider: the authorization code flow with PKCE, the device
// flow, and refreshing with no leeway at all. A refresh token is good once; one
// that comes again revokes everything of its grant, as a code does.
import { createHash, randomBytes } from "node:crypto";
import { createServer } from "node:http";

const wait = (ms) => new Promise((r) => setTimeout(r, ms));
const fresh = (kind) => `${kind}-canary-${randomBytes(18).toString("base64url")}`;

// start listens on a free port of loopback.
//
//	clientId, clientSecret  the client that is admitted; a secret of "" is a public client
//	basic                   the client's secret must come by HTTP basic authentication
//	life                    expires_in of an access token, seconds
//	issuer                  is sent with a callback as iss
//
// The result has `url`, `calls` (the forms of POST /token), `deviceCalls`,
// `revocations`, `early` (polls that came too soon), `faults` (what becomes of the
// next token calls: "lost" grants and cuts the connection, "reset" only cuts it,
// "stall" never answers, "html", a status as a number, {status, json, header},
// {slow: ms, then}, or {until: promise, then}), `issue()`, `expire()`, `accepts(field)`, `approve(url)`,
// `secrets` (strings that must never appear) and `close()`.
export async function start({
  clientId = "weir-at-idp",
  clientSecret = "client-secret-canary-0123456789",
  basic = false,
  life = 3600,
  issuer = "",
} = {}) {
  const idp = {
    calls: [],
    deviceCalls: [],
    revocations: 0,
    faults: [],
    early: 0,
    life,
    interval: 1,
    secrets: new Set(clientSecret ? [clientSecret] : []),
    clientId,
    clientSecret,
  };
  const access = new Map(),
    refresh = new Map(),
    codes = new Map(),
    devices = new Map();
  const remember = (s) => {
    idp.secrets.add(s);
    return s;
  };

  // issue creates the tokens of a grant.
  idp.issue = (grant = { live: true }) => {
    for (const t of access.values()) if (t.grant === grant) t.live = false;
    const tokens = {
      access_token: remember(fresh("access")),
      refresh_token: remember(fresh("refresh")),
      token_type: "Bearer",
      expires_in: idp.life,
    };
    access.set(tokens.access_token, { grant, live: true });
    refresh.set(tokens.refresh_token, { grant, used: false });
    return tokens;
  };
  // expire ends every access token.
  idp.expire = () => {
    for (const t of access.values()) t.live = false;
  };
  // accepts judges the authorization field of a call to the provider's API.
  idp.accepts = (field = "") => {
    const t = access.get(field.replace(/^Bearer /, ""));
    return !!t && t.live && t.grant.live;
  };
  const revoke = (grant) => {
    grant.live = false;
    idp.revocations++;
  };

  // approve is the user at the address where an authorization begins: it checks
  // the parameters and returns the query of the callback.
  idp.approve = (address) => {
    const url = new URL(address),
      q = Object.fromEntries(url.searchParams);
    const problem =
      url.origin !== idp.url || url.pathname !== "/authorize"
        ? "address"
        : q.response_type !== "code"
          ? "response_type"
          : q.client_id !== clientId
            ? "client_id"
            : q.code_challenge_method !== "S256" || !/^[\w-]{43}$/.test(q.code_challenge ?? "")
              ? "code_challenge"
              : !q.redirect_uri
                ? "redirect_uri"
                : !(q.state?.length > 40)
                  ? "state"
                  : "";
    if (problem) throw new Error(`bad authorization request: ${problem} in ${address}`);
    const code = remember(fresh("code"));
    codes.set(code, { challenge: q.code_challenge, redirectUri: q.redirect_uri, used: false, grant: { live: true } });
    return new URLSearchParams({ state: q.state, ...(issuer ? { iss: issuer } : {}), code }).toString();
  };
  // decide is the user at the device page: allow or deny.
  idp.decide = (userCode, answer) => {
    for (const d of devices.values()) if (d.userCode === userCode) d.answer = answer;
  };

  function admitted(req, form) {
    if (basic)
      return (
        req.headers.authorization ===
          "Basic " +
            Buffer.from(`${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`).toString("base64") &&
        !form.client_secret
      );
    return form.client_id === clientId && (clientSecret ? form.client_secret === clientSecret : !form.client_secret);
  }

  function grantFor(form) {
    switch (form.grant_type) {
      case "refresh_token": {
        const t = refresh.get(form.refresh_token);
        if (!t?.grant.live) return { error: "invalid_grant" };
        if (t.used) {
          revoke(t.grant);
          return { error: "invalid_grant" };
        }
        t.used = true;
        return idp.issue(t.grant);
      }
      case "authorization_code": {
        const c = codes.get(form.code);
        if (c?.used) {
          revoke(c.grant);
          return { error: "invalid_grant" };
        }
        const proof = createHash("sha256")
          .update(form.code_verifier ?? "")
          .digest("base64url");
        if (
          !c ||
          c.challenge !== proof ||
          c.redirectUri !== form.redirect_uri ||
          !/^[\w.~-]{43,128}$/.test(form.code_verifier)
        )
          return { error: "invalid_grant" };
        remember(form.code_verifier);
        c.used = true;
        return idp.issue(c.grant);
      }
      case "urn:ietf:params:oauth:grant-type:device_code": {
        const d = devices.get(form.device_code),
          now = Date.now();
        if (!d) return { error: "invalid_grant" };
        const early = now - d.at < d.interval * 1000 - 20;
        d.at = now;
        if (now > d.ends) return { error: "expired_token" };
        if (early) {
          d.interval += 5;
          idp.early++;
          return { error: "slow_down" };
        }
        if (d.answer === "deny") return { error: "access_denied" };
        if (d.answer !== "allow") return { error: "authorization_pending" };
        if (d.used) return { error: "invalid_grant" };
        d.used = true;
        return idp.issue();
      }
    }
    return { error: "unsupported_grant_type" };
  }

  const send = (res, status, json, header = {}) =>
    res
      .writeHead(status, { "content-type": "application/json", ...header })
      .end(typeof json === "string" ? json : JSON.stringify(json));

  const server = createServer(async (req, res) => {
    res.on("error", () => {});
    let body = "";
    for await (const part of req) body += part;
    const form = Object.fromEntries(new URLSearchParams(body)),
      path = new URL(req.url, idp.url).pathname;
    if (req.method !== "POST" || (path !== "/token" && path !== "/device")) return void send(res, 404, {});
    const calls = path === "/token" ? idp.calls : idp.deviceCalls;
    calls.push(form);
    let fault = path === "/token" ? idp.faults.shift() : undefined;
    if (fault?.slow) {
      await wait(fault.slow);
      fault = fault.then;
    }
    if (fault?.until) {
      await fault.until;
      fault = fault.then;
    }
    if (fault === "stall") return; // until the caller disconnects
    if (fault === "reset") return void res.socket.resetAndDestroy();
    if (fault === "html") return void res.writeHead(200, { "content-type": "text/html" }).end("<p>signed out");
    if (typeof fault === "number") return void send(res, fault, "<h1>oops");
    if (fault?.status) return void send(res, fault.status, fault.json ?? {}, fault.header);
    if (!admitted(req, form)) return void send(res, 401, { error: "invalid_client" });
    if (path === "/device") {
      const code = remember(fresh("device")),
        userCode = randomBytes(4).toString("hex").toUpperCase();
      devices.set(code, {
        userCode,
        at: Date.now(),
        interval: idp.interval,
        ends: Date.now() + 60_000,
      });
      return void send(res, 200, {
        device_code: code,
        user_code: userCode,
        verification_uri: "https://id.example.com/device",
        expires_in: 60,
        interval: idp.interval,
      });
    }
    const answer = grantFor(form);
    if (fault === "lost") return void res.socket.resetAndDestroy();
    send(res, answer.error ? 400 : 200, answer);
  });
  server.keepAliveTimeout = 60_000;
  await new Promise((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  idp.url = `http://127.0.0.1:${server.address().port}`;
  idp.close = () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  return idp;
}
