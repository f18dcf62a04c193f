// A fake issuer of OpenID Connect: discovery, keys, the code flow with PKCE, userinfo, and
// tokens with every mistake that a test asks for. Its keys are of RS256.
import { createHash, createHmac, createSign, generateKeyPairSync, randomBytes } from "node:crypto";
import { createServer } from "node:http";

const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const b64 = (v) => Buffer.from(typeof v === "string" ? v : JSON.stringify(v)).toString("base64url");
const now = () => Math.floor(Date.now() / 1000);

// signature returns the signature of a token's two parts by an algorithm, which may be one of the known
// attacks: none, or HS256 with the public key as its secret.
function signature(alg, signed) {
  if (alg === "none") return "";
  if (alg === "HS256")
    return createHmac("sha256", publicKey.export({ type: "spki", format: "pem" }))
      .update(signed)
      .digest("base64url");
  return createSign("sha256").update(signed).sign(privateKey, "base64url");
}

// start listens on a free port of loopback. The result has
//
//	url        the issuer
//	user       the claims of the person who signs in: sub, name, groups, …
//	change     set, changes the claims of the next ID tokens
//	alg        of the next ID tokens: RS256, or none and HS256 for attacks
//	answers    by path, a function (res, body) that answers instead
//	seen       the requests by path
//	token(claims, alg, header)  signs a token of this issuer, valid for five minutes
//	authorize(address)          signs the person in, and returns the query of the callback
//	close()
//
// A browser that opens /authorize is signed in at once.
export async function start() {
  const codes = new Map();
  const issuer = { user: { sub: "ada", name: "Ada" }, change: null, alg: "RS256", answers: {}, seen: {} };
  issuer.token = (claims, alg = "RS256", header = {}) => {
    const iat = now();
    const body = { iss: issuer.url, iat, exp: iat + 300, ...claims };
    const signed = `${b64({ alg, kid: "k1", typ: "JWT", ...header })}.${b64(body)}`;
    return `${signed}.${signature(alg, signed)}`;
  };
  issuer.authorize = (address) => {
    const q = new URL(address).searchParams;
    if (q.get("response_type") !== "code" || q.get("code_challenge_method") !== "S256" || !q.get("nonce"))
      throw new Error(`not a code flow with PKCE: ${address}`);
    const code = randomBytes(18).toString("base64url");
    codes.set(code, q);
    return new URLSearchParams({ code, state: q.get("state"), iss: issuer.url }).toString();
  };
  const exchange = (form) => {
    const q = codes.get(form.get("code"));
    codes.delete(form.get("code"));
    const proof = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    if (!q || proof !== q.get("code_challenge") || form.get("redirect_uri") !== q.get("redirect_uri"))
      return [400, { error: "invalid_grant" }];
    const claims = { aud: q.get("client_id"), nonce: q.get("nonce"), ...issuer.user };
    issuer.change?.(claims);
    return [200, { id_token: issuer.token(claims, issuer.alg), access_token: "access", token_type: "Bearer" }];
  };
  const paths = {
    "/.well-known/openid-configuration": () => ({
      issuer: issuer.url,
      authorization_endpoint: `${issuer.url}/authorize`,
      token_endpoint: `${issuer.url}/token`,
      jwks_uri: `${issuer.url}/keys`,
      userinfo_endpoint: `${issuer.url}/userinfo`,
      authorization_response_iss_parameter_supported: true,
    }),
    "/keys": () => ({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k1", use: "sig", alg: "RS256" }] }),
    "/cdn-cgi/access/certs": () => paths["/keys"](), // of Cloudflare Access, by the vendors' hosts
    "/userinfo": () => issuer.user,
  };
  const server = createServer(async (req, res) => {
    let body = "";
    for await (const part of req) body += part;
    const { pathname } = new URL(req.url, issuer.url);
    issuer.seen[pathname] = (issuer.seen[pathname] ?? 0) + 1;
    if (issuer.answers[pathname]) return void issuer.answers[pathname](res, body);
    if (pathname === "/authorize") {
      const address = issuer.url + req.url;
      const back = new URL(address).searchParams.get("redirect_uri");
      return void res.writeHead(302, { location: `${back}?${issuer.authorize(address)}` }).end();
    }
    const [status, answer] = pathname === "/token" ? exchange(new URLSearchParams(body)) : [200, paths[pathname]?.()];
    res.writeHead(answer ? status : 404, { "content-type": "application/json" }).end(JSON.stringify(answer ?? {}));
  });
  await new Promise((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  issuer.url = `http://127.0.0.1:${server.address().port}`;
  issuer.close = () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  return issuer;
}
