// The JSON of the management API, as the dashboard reads it. Times are Unix
// milliseconds.

import type { BudgetWindow } from "./pages/budgets/windows";
import type { Role } from "./roles";

// Session is the body of GET and POST /api/session.
export interface Session {
  signedIn: boolean;
  operator: boolean;
  /** set if the session belongs to a management key, as are keyName and keyId */
  machineId?: string;
  keyName?: string;
  keyId?: string;
  /** set if the session belongs to a person, as are personName and roles, by machineId or "*" */
  personId?: string;
  personName?: string;
  roles?: Record<string, Role>;
  /** once, in the answer to an accepted invitation: the personal sign-in token */
  token?: string;
  csrfToken?: string;
  idleAt?: number;
  expiresAt?: number;
}

// List is the body of a route that lists rows.
export interface List<T> {
  data: T[];
}

// Machine rows: GET /api/machines.
export interface MachineRow {
  machineId: string;
  name?: string;
  createdAt: number;
  /** of the person who asks */
  role?: Role;
  /** of a deleted one */
  restoreUntil?: number;
}

// MemberTemplate bounds the keys that a member creates; what is absent is not bounded.
export interface MemberTemplate {
  keys?: number;
  models?: string[];
  rpm?: number;
  dailyMax?: number;
  tpm?: number;
  maxParallel?: number;
  /** after which a key expires */
  days?: number;
  budgetUsd?: number;
  budgetWindow?: BudgetWindow;
}

export interface PersonRow {
  id: string;
  name?: string;
  email?: string;
  /** of the identity provider; absent for someone who signs in by a link */
  issuer?: string;
  role: Role;
  template?: MemberTemplate;
  /** the role comes from a rule of the identity provider */
  byRule?: boolean;
  firstSeen: number;
  lastSeen: number;
  sessions: number;
}

export interface InvitationRow {
  id: string;
  role?: Role;
  note?: string;
  /** the person who is to sign in again */
  person?: string;
  expiresAt: number;
  /** only in the answer that creates it */
  link?: string;
}

// InvitationOffer is what POST /api/session {invitation, preview} answers.
export interface InvitationOffer {
  /** its name, or the id */
  machine: string;
  /** the name of the person who made it, or "The operator of this gateway" */
  by?: string;
  /** of all their keys together */
  budgetUsd?: number;
  budgetWindow?: BudgetWindow;
  /** none for someone who is to sign in again */
  role?: Role;
  /** a sign-in by an identity provider is required */
  provider?: boolean;
  expiresAt: number;
}

// PeopleList is the body of GET /api/people.
export interface PeopleList extends List<PersonRow> {
  invitations: InvitationRow[];
}

// MachinePage is a page of GET /api/machines.
export interface MachinePage extends List<MachineRow> {
  /** cursor of the next page */
  next?: string;
  /** number of all machines that match */
  total: number;
}

// ConnectionRow is a row of GET /api/providers.
export interface ConnectionRow {
  id: string;
  provider: string;
  name?: string;
  authType: string;
  hasKey: boolean;
  last4?: string;
  secrets: string[];
  priority: number;
  weight: number;
  isActive: boolean;
  providerSpecificData: Record<string, unknown> & { baseUrl?: string; prefix?: string; enabledModels?: string[] };
  status: string;
  /** outcome of its last call: ready, untested, key_refused, out_of_credit, limited, unreachable, failing, blocked, key_unavailable */
  health: string;
  /** of the first call with this outcome */
  healthSince?: number;
  healthAt?: number;
  /** airport code of the place that the provider refuses */
  blockedPlace?: string;
  lastSuccessAt?: number;
  lastError?: string;
  cooldownUntil?: number;
  lastHour: { attempts: number; failedAttempts: number };
  spentTodayUsd: number;
  spentMonthUsd: number;
  /** attempts of the month without a known price */
  unpricedAttempts?: number;
  generation: number;
  tokenGeneration: number;
  updatedAt: number;
  expiresAt?: number;
}

// ProviderRow is a row of GET /api/catalog/providers.
export interface ProviderRow {
  id: string;
  alias: string;
  name: string;
  /** of its mark */
  initials: string;
  kinds: string[];
  auth: string;
  keyFree: boolean;
  /** where its keys are created */
  keyUrl?: string;
  /** with which its keys begin, and no other provider's */
  keyPrefixes?: string[];
  vars: string[];
  optionalVars: string[];
  baseUrlAllowed: boolean;
  baseUrl?: string;
  local: boolean;
  /** the gateway calls no private addresses */
  localOff?: boolean;
  listsModels: boolean;
  /** sign-in flows of its accounts */
  connect: ("authorize" | "device")[];
  /** why the operator's OAuth client cannot be used */
  connectError?: string;
}

// TestResult is the body of POST /api/providers/{id}/test; error is null if the
// test succeeded.
export interface TestResult {
  ok: boolean;
  latencyMs: number;
  status: number;
  error: string | null;
  message?: string;
  model?: string;
}

// ModelRow is a row of GET /api/models/list/{kind} and /api/providers/{id}/models.
export interface ModelRow {
  id: string;
  owned_by: string;
  kind?: string;
  context_length?: number;
  max_completion_tokens?: number;
  dimensions?: number;
  capabilities?: Record<string, boolean>;
  /** USD per million tokens: input, output, cache_read, …; character per million; image, second, request, search each */
  pricing?: Record<string, number>;
  /** the last day, and the model to use instead, where they are known */
  deprecated?: { date?: string; successor?: string };
}

// PriceVariant has the rates on other terms than the usual ones.
export type PriceVariant = Record<string, number | string | string[]>;

// ModelInfo is the body of GET /api/models/info.
export interface ModelInfo extends Omit<ModelRow, "pricing"> {
  /** the usual rates, and as variants those on other terms */
  pricing?: Record<string, number | PriceVariant[]>;
  name?: string;
  endpoint?: string | null;
  params?: string[];
  input_modalities?: string[];
  output_modalities?: string[];
}

// CustomModel is a row of GET /api/models/custom.
export interface CustomModel {
  id: string;
  type?: string;
  providerAlias: string;
  name?: string;
  contextLength?: number;
  maxTokens?: number;
}

// Cooldown is a row of GET /api/models/availability.
export interface Cooldown {
  connectionId: string;
  model?: string;
  reason: string;
  until?: number;
  failures?: number;
}

// QuotaWindow is one limit of an account; left is a share from 0 to 1.
export interface QuotaWindow {
  name: string;
  /** upstream model; missing for a limit of the whole account */
  model?: string;
  left: number;
  limit?: number;
  remaining?: number;
  resetsAt?: number;
  spanSeconds?: number;
  observedAt: number;
}

// Quota is a row of GET /api/quota.
export interface Quota {
  connectionId: string;
  windows: QuotaWindow[];
}

// StatusPage is a row of GET /api/health/providers: what a provider's public status page says.
export interface StatusPage {
  provider: string;
  name: string;
  /** its address */
  page: string;
  indicator: "none" | "minor" | "major" | "critical" | "maintenance" | "unknown";
  description?: string;
  incidents?: string[];
  readAt?: number;
}

// TimelineStep is what the attempts of an hour or a day found.
export interface TimelineStep {
  /** its start; missing in a total */
  at?: number;
  state?: "operational" | "degraded" | "down";
  attempts: number;
  failed: number;
  /** by causes */
  failedBy?: Record<string, number>;
  /** share of the attempts without those refused because of the request itself */
  success: number;
  latencyP50Ms?: number;
  latencyP95Ms?: number;
  firstTokenP50Ms?: number;
  firstTokenP95Ms?: number;
}

// Timeline is a row of GET /api/health/timeline. Steps without attempts are left out.
export interface Timeline {
  connectionId?: string;
  provider?: string;
  model?: string;
  total: TimelineStep;
  steps: TimelineStep[];
}

// Timelines is the body of GET /api/health/timeline.
export interface Timelines extends List<Timeline> {
  span: "24h" | "30d";
  /** start of the first step */
  from: number;
  stepMs: number;
  steps: number;
}

// Budget is a row of GET /api/budgets. Amounts are dollars, tokens or requests.
export interface Budget {
  id: string;
  name: string;
  keyId?: string;
  models?: string[];
  tag?: string;
  /** see loadBudgets; "" of a person who is not known any more */
  personName?: string;
  tool?: string;
  unit: "usd" | "tokens" | "requests";
  limit: number;
  window: BudgetWindow;
  unpriced?: "pass" | "refuse";
  webhookUrl?: string;
  /** in the answer for one budget only */
  webhookSecret?: string;
  spent: number;
  reserved: number;
  resetsAt?: number;
  unpricedCalls?: number;
  exhausted?: boolean;
  generation: number;
}

// Combo is a row of GET /api/combos.
export interface Combo {
  id: string;
  name: string;
  kind?: string;
  models: string[];
  strategy?: string;
  /** by model, for the strategy weighted; others have 1 */
  weights?: Record<string, number>;
  /** what the strategy weighted keeps together */
  splitBy?: string;
  /** for classes of failures, whether the next model is tried */
  on?: Record<string, "next" | "stop">;
  /** models that no longer exist */
  unknown?: string[];
  generation: number;
}

// KeyNetwork is a row of GET /api/keys/{id}/networks.
export interface KeyNetwork {
  network: string;
  country?: string;
  tools?: string[];
  firstAt: number;
  lastAt: number;
  requests: number;
}

// KeyRow is a row of GET /api/keys.
export interface KeyRow {
  id: string;
  /** only in the answer that creates the key */
  apiKey?: string;
  name?: string;
  /** the id of the person who has it */
  person?: string;
  /** see loadKeys */
  personName?: string;
  last4?: string;
  scopes: string[];
  models?: string[];
  rpm?: number;
  dailyMax?: number;
  tpm?: number;
  maxParallel?: number;
  /** of each of its calls */
  tags?: string[];
  /** undefined is the setting of the machine */
  capturePercent?: number;
  captureHours?: number;
  requestsToday: number;
  createdAt: number;
  expiresAt?: number;
  pausedAt?: number;
  /** API_KEY_SECRET is not the one by which it was created */
  invalid?: boolean;
  limitedUntil?: number;
  /** the text that a rotation has replaced, while it is valid */
  earlier?: { last4?: string; until: number };
  lastUsedAt?: number;
  /** since the creation of the key, as are tokens and spentUsd */
  requests: number;
  /** those of requests that the gateway refused */
  refused: number;
  requestsLastDay: number;
  tokens: number;
  spentUsd: number;
  spentTodayUsd: number;
  spentMonthUsd: number;
  unpricedAttempts?: number;
  generation: number;
}

// Attempt is one failed attempt of a request.
export interface Attempt {
  connectionId: string;
  provider: string;
  model?: string;
  status: number;
  code?: string;
  text?: string;
  /** from the arrival of the request to the start of the attempt */
  sentMs?: number;
  /** from its start to its failure */
  ms: number;
}

// RequestRow is a row of GET /api/requests.
export interface RequestRow {
  seq: number;
  id: string;
  at: number;
  keyId?: string;
  endpoint: string;
  /** the model that the client named */
  asked?: string;
  model?: string;
  provider?: string;
  connectionId?: string;
  status: number;
  error?: string;
  /** missing in requests of earlier versions, as is reason */
  outcome?: "succeeded" | "provider_failed" | "no_account" | "refused" | "left";
  /** of a refusal */
  reason?: string;
  /** of the error of a request without attempts */
  message?: string;
  latencyMs: number;
  /** to the first event of a stream */
  firstMs?: number;
  /** why a stream ended, as its provider writes it */
  finish?: string;
  /** to the start of the attempt that answered */
  sentMs?: number;
  attempts: number;
  failed?: Attempt[];
  dropped?: string[];
  tags?: string[];
  /** that its user agent names */
  tool?: string;
  /** a hash of its session, if a strategy asked for it */
  session?: string;
  /** of the request, if it had a valid one */
  traceparent?: string;
  /** x-connection-id and x-provider, if they were sent */
  headers?: Record<string, string>;
  /** sizes of the bodies; missing if they were not known in advance */
  requestBytes?: number;
  answerBytes?: number;
  /** its bodies were stored, see CapturedBodies */
  captured?: boolean;
  inputTokens?: number;
  outputTokens?: number;
  reasoningTokens?: number;
  cacheReadTokens?: number;
  cacheWriteTokens?: number;
  costUsd?: number;
  priced?: boolean;
  /** the provider did not state all of the tokens */
  estimated?: boolean;
  /** what keeps the cost unknown, such as web_search */
  unpricedParts?: string[];
}

// CaptureRow is a row of GET /api/captures: a request whose bodies are stored.
export interface CaptureRow {
  id: string;
  keyId?: string;
  at: number;
  expiresAt: number;
  bytes: number;
}

// CaptureList is the answer to GET /api/captures.
export interface CaptureList extends List<CaptureRow> {
  bytes: number;
  maxBytes: number;
}

// CapturedBody is a stored body, CapturedBodies are both of a request.
export interface CapturedBody {
  contentType?: string;
  /** of the whole body */
  bytes: number;
  /** text is its beginning */
  cut: boolean;
  /** it is not text */
  omitted: boolean;
  text: string;
}
export interface CapturedBodies extends CaptureRow {
  request: CapturedBody;
  answer: CapturedBody;
}

// AuditRow is a row of GET /api/audit.
export interface AuditRow {
  seq: number;
  at: number;
  actor: string;
  action: string;
  target?: string;
  fields?: string[];
}

// PlanStep is an account in the plan of POST /api/explain.
export interface PlanStep {
  /** 1 for the first attempt; 0 if the account is skipped */
  try: number;
  model: string;
  provider: string;
  connectionId: string;
  connectionName: string;
  upstream: string;
  translated: string[];
  dropped: string[];
  skipped: string;
  /** where marks of cached prefixes are added */
  cacheMarks: string[];
  /** the classes of failures after which the next model of the combo is tried */
  nextAfter: string[];
  cooldownMs: number;
  trial: boolean;
  /** little is left of a limit: accounts of equal priority are tried first */
  lowQuota: boolean;
  /** the session belongs to it as long as all accounts of the model are ready */
  home: boolean;
  budgets: PlanBudget[];
}

// PlanBudget is what a request would reserve of a budget.
export interface PlanBudget {
  id: string;
  name: string;
  unit: Budget["unit"];
  reserves: number;
  left: number;
  /** budget_exceeded or model_not_priced; "" if the budget admits the request */
  refused: string;
}

// Plan is the body of POST /api/explain.
export interface Plan {
  path: string;
  maxAttempts: number;
  billable: boolean;
  /** the field by which the session was recognized, "messages", "session" for a named one, or "" */
  session: string;
  plan: PlanStep[];
}

// SettingValues is the body of GET /api/settings.
export interface SettingValues {
  strategy: string;
  firstByteSeconds: number;
  idleSeconds: number;
  embeddingInputType: string;
  timeZone: string;
  responsesWebSocket: string;
  promptCaching: string;
  streamCost: string;
  keyNetworks: string;
  tagsFrom?: string[]; // fields of bodies whose values are tags
  statusFeeds: string;
  publicStatus: string;
  // The models that plain Claude names stand for; undefined is Anthropic's own.
  claudeOpusModel?: string;
  claudeSonnetModel?: string;
  claudeHaikuModel?: string;
  claudeFableModel?: string;
  // Written into the configuration of tools; undefined for none.
  defaultModel?: string;
  smallModel?: string;
  modelPrices?: Record<string, string>; // own prices of models
  capturePercent: number; // share of the requests whose bodies are stored
  captureHours: number;
  maxParallel: number;
}

// ToolRow is a tool of GET /api/setup.
export interface ToolRow {
  id: string;
  name: string;
  kind: "coding" | "app" | "library";
  /** POST /api/setup has a command for it */
  script: boolean;
  /** that the command writes */
  files?: string[];
  texts: { where: string; language: string; text: string }[];
  notes?: string[];
  /** its vendor's servers make the calls */
  public?: boolean;
}

// ToolList is the body of GET /api/setup. The texts have the placeholders.
export interface ToolList {
  data: ToolRow[];
  placeholders: { url: string; key: string; model: string; smallModel: string };
  model?: string;
  smallModel?: string;
}

// SetupCommand is the body of POST /api/setup.
export interface SetupCommand {
  lease: string;
  model: string;
  smallModel: string;
  expiresAt: number;
  command: { sh: string; ps1: string };
}

// Difference lists the records of one kind that an import changes.
export interface Difference {
  added: string[];
  changed: string[];
  deleted: string[];
}

// ImportPreview is the body of POST /api/import with preview.
export interface ImportPreview {
  budgetsSkipped?: number;
  keysSkipped?: number;
  keysUnusable?: number;
  people?: number;
  peopleSkipped?: number;
  unknownProviders?: string[];
  from?: string;
  exportedAt?: number;
  changes: Record<string, Difference>;
}
