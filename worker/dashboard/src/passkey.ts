// Passkeys: the ceremonies of the browser, with what they return in the form of the API.
import { call, raw, session } from "./api";
import type { Session } from "./api-types";

interface Options {
  challenge: string;
  rpId: string;
  /** of the person of a new passkey */
  person?: string;
  name?: string;
  exclude?: string[];
}

const text = (data: ArrayBuffer) =>
  btoa(String.fromCharCode(...new Uint8Array(data)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

const bytes = (base64url: string) =>
  Uint8Array.from(atob(base64url.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));

// ceremony returns what the browser returns, or says in words why it does not.
async function ceremony<T>(ask: () => Promise<Credential | null>): Promise<{ id: ArrayBuffer; response: T }> {
  if (!window.PublicKeyCredential)
    throw new Error("This browser has no passkeys here: they need https://NAME or http://localhost.");
  const made = await ask().catch((e: DOMException) => {
    if (e.name === "NotAllowedError") throw new Error("No passkey was used: you canceled, or it took too long.");
    if (e.name === "InvalidStateError") throw new Error("You already have a passkey on this device.");
    throw new Error(`The browser could not use a passkey: ${e.message}`);
  });
  const credential = made as PublicKeyCredential;
  return { id: credential.rawId, response: credential.response as T };
}

async function create(o: Options, name: string) {
  const { response } = await ceremony<AuthenticatorAttestationResponse>(() =>
    navigator.credentials.create({
      publicKey: {
        challenge: bytes(o.challenge),
        rp: { id: o.rpId, name: "weir" },
        user: { id: new TextEncoder().encode(o.person), name, displayName: name },
        pubKeyCredParams: [-7, -257].map((alg) => ({ type: "public-key", alg })),
        excludeCredentials: (o.exclude ?? []).map((id) => ({ type: "public-key", id: bytes(id) })),
        authenticatorSelection: { residentKey: "required", requireResidentKey: true, userVerification: "required" },
        attestation: "none",
      },
    }),
  );
  const key = response.getPublicKey();
  if (!key) throw new Error("This browser cannot use this kind of passkey.");
  return {
    clientDataJSON: text(response.clientDataJSON),
    authenticatorData: text(response.getAuthenticatorData()),
    publicKey: text(key),
    algorithm: response.getPublicKeyAlgorithm(),
  };
}

const begin = async (body: object): Promise<Options> => (await raw("POST", "/api/sign-in/passkey", body)).json();
const enter = (body: object): Promise<Session> => session(raw("POST", "/api/session/passkey", body));

// signInByPasskey signs in, and accepts an invitation by its secret if there is one.
export async function signInByPasskey(invitation?: string) {
  const o = await begin({});
  const { id, response } = await ceremony<AuthenticatorAssertionResponse>(() =>
    navigator.credentials.get({
      publicKey: { challenge: bytes(o.challenge), rpId: o.rpId, userVerification: "required" },
    }),
  );
  const passkey = {
    id: text(id),
    clientDataJSON: text(response.clientDataJSON),
    authenticatorData: text(response.authenticatorData),
    signature: text(response.signature),
    userHandle: text(response.userHandle ?? new ArrayBuffer(0)),
  };
  return enter({ passkey, invitation });
}

// acceptByPasskey accepts an invitation by a new passkey.
export async function acceptByPasskey(invitation: string, name: string) {
  const o = await begin({ invitation });
  return enter({ newPasskey: await create(o, o.name ?? name), invitation, name });
}

// addPasskey adds a passkey to the person who is signed in.
export async function addPasskey() {
  const o = await call<Options>("POST", "/api/passkeys/challenge", {});
  await call("POST", "/api/passkeys", { newPasskey: await create(o, o.name ?? "") });
}
