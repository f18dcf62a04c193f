// The identity providers that the form knows, with the claims of docs/guides/sign-in.md.

export interface Preset {
  id: string;
  title: string;
  /** of the API; absent, people sign in there */
  kind?: "cloudflare-access" | "google-iap" | "ci";
  /** the issuer, or its form */
  issuer: string;
  /** the issuer is the same for everyone */
  fixed?: boolean;
  client?: string;
  scopes?: string;
  /** the claim of the first rule, its value in words, and what to know */
  claim: string;
  value: string;
  note: string;
}

export const presets: Preset[] = [
  {
    id: "google",
    title: "Google",
    issuer: "https://accounts.google.com",
    fixed: true,
    claim: "hd",
    value: "acme.com",
    note: "hd is the domain of the Workspace. The end of an e-mail address proves nothing.",
  },
  {
    id: "entra",
    title: "Microsoft Entra ID",
    issuer: "https://login.microsoftonline.com/TENANT/v2.0",
    claim: "roles",
    value: "an app role",
    note: "Use app roles: groups are ids, and are left out above 200. The tenant “common” is refused.",
  },
  {
    id: "okta",
    title: "Okta",
    issuer: "https://NAME.okta.com",
    scopes: "email profile groups",
    claim: "groups",
    value: "a group",
    note: "Add a groups claim with a filter to the application. At most 100 groups are listed.",
  },
  {
    id: "keycloak",
    title: "Keycloak",
    issuer: "https://HOST/realms/REALM",
    claim: "realm_access > roles",
    value: "a realm role",
    note: "Add the mapper “realm roles” to the ID token or userinfo.",
  },
  {
    id: "authentik",
    title: "Authentik",
    issuer: "https://HOST/application/o/NAME/",
    claim: "groups",
    value: "a group",
    note: "The issuer ends with a slash.",
  },
  {
    id: "zitadel",
    title: "Zitadel",
    issuer: "https://NAME.zitadel.cloud",
    claim: "urn:zitadel:iam:org:project:roles",
    value: "a role",
    note: "Turn on “Assert roles on authentication” in the project.",
  },
  {
    id: "auth0",
    title: "Auth0",
    issuer: "https://TENANT.auth0.com/",
    claim: "https://NAMESPACE/roles",
    value: "a role",
    note: "An action sets the claim. The issuer ends with a slash.",
  },
  {
    id: "gitlab",
    title: "GitLab",
    issuer: "https://gitlab.com",
    claim: "groups_direct",
    value: "a group",
    note: "Groups come from userinfo.",
  },
  {
    id: "other",
    title: "Another issuer",
    issuer: "https://id.example.com",
    claim: "groups",
    value: "a group",
    note: "Any issuer of OpenID Connect with the code flow and PKCE.",
  },
  {
    id: "cloudflare-access",
    title: "Cloudflare Access",
    kind: "cloudflare-access",
    issuer: "https://TEAM.cloudflareaccess.com",
    client: "Application Audience (AUD) tag",
    claim: "email",
    value: "ada@acme.com",
    note: "The proxy’s signed header is verified on every call. Set its session duration to 12 hours or less.",
  },
  {
    id: "google-iap",
    title: "Google IAP",
    kind: "google-iap",
    issuer: "https://cloud.google.com/iap",
    fixed: true,
    client: "Audience: /projects/NUMBER/global/backendServices/ID",
    claim: "hd",
    value: "acme.com",
    note: "The proxy’s signed header is verified on every call.",
  },
  {
    id: "github-actions",
    title: "GitHub Actions",
    kind: "ci",
    issuer: "https://token.actions.githubusercontent.com",
    fixed: true,
    client: "Audience: the URL of this gateway",
    claim: "sub",
    value: "repo:OWNER/NAME:ref:refs/heads/main",
    note: "Jobs exchange their ID token for one of this gateway, for an hour. No secret is stored.",
  },
  {
    id: "gitlab-ci",
    title: "GitLab CI",
    kind: "ci",
    issuer: "https://gitlab.com",
    client: "Audience: the URL of this gateway",
    claim: "sub",
    value: "project_path:GROUP/NAME:ref_type:branch:ref:main",
    note: "Jobs exchange their ID token for one of this gateway, for an hour. No secret is stored.",
  },
];

export interface Rule {
  claim: string[];
  value: string;
  role: string;
  machines: string[];
}

export interface Provider {
  id: string;
  kind?: string;
  name: string;
  issuer: string;
  clientId: string;
  hasSecret: boolean;
  scopes?: string[];
  rules: Rule[];
}

// RuleForm is a rule as the form has it: the path of the claim with > between names.
export interface RuleForm {
  claim: string;
  value: string;
  role: string;
  machine: string;
}

export interface Form {
  preset: string;
  name: string;
  issuer: string;
  clientId: string;
  secret: string;
  scopes: string;
  rules: RuleForm[];
}

const names = (claim: string) => claim.split(">").map((s) => s.trim());

// emptyForm returns the form of a preset.
export function emptyForm(p: Preset, origin: string): Form {
  return {
    preset: p.id,
    name: p.title,
    issuer: p.fixed || p.kind === "ci" || p.id === "gitlab" ? p.issuer : "",
    clientId: p.kind === "ci" ? origin : "",
    secret: "",
    scopes: p.scopes ?? "",
    rules: [{ claim: p.claim, value: "", role: "viewer", machine: "*" }],
  };
}

// formOf returns the form of a stored provider.
export function formOf(p: Provider): Form {
  const preset =
    presets.find((x) => (x.kind ?? "") === (p.kind ?? "") && x.fixed && x.issuer === p.issuer) ??
    presets.find((x) => (x.kind ?? "") === (p.kind ?? "") && (p.kind ? !x.fixed : x.id === "other"));
  return {
    preset: preset?.id ?? "other",
    name: p.name,
    issuer: p.issuer,
    clientId: p.clientId,
    secret: "",
    scopes: (p.scopes ?? []).join(" "),
    // A rule of several machines is a row for each.
    rules: p.rules.flatMap((r) =>
      r.machines.map((machine) => ({ claim: r.claim.join(" > "), value: r.value, role: r.role, machine })),
    ),
  };
}

// bodyOf returns the body of the API. Without a secret the stored one stays.
export function bodyOf(f: Form) {
  const kind = presets.find((p) => p.id === f.preset)?.kind;
  const scopes = f.scopes.split(/[\s,]+/).filter(Boolean);
  return {
    ...(kind ? { kind } : {}),
    name: f.name.trim(),
    issuer: f.issuer.trim(),
    clientId: f.clientId.trim(),
    ...(f.secret && !kind ? { clientSecret: f.secret } : {}),
    ...(scopes.length && !kind ? { scopes } : {}),
    rules: f.rules
      .filter((r) => r.claim.trim() && r.value.trim())
      .map((r) => ({ claim: names(r.claim), value: r.value.trim(), role: r.role, machines: [r.machine] })),
  };
}
