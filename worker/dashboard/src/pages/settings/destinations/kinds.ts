// The kinds of destinations as the forms show them. To add one: a row here, and one in
// pkg/machine/deliver.

// Input is a field of a kind.
export interface Input {
  /** as the API calls it; of a preset also a name of its own, see Preset.values */
  name: string;
  label: string;
  hint?: string;
  /** a checkbox has the value “true”, or none */
  type?: "url" | "number" | "email" | "checkbox";
  /** is sealed and never shown again */
  secret?: boolean;
  required?: boolean;
  placeholder?: string;
  choices?: [value: string, name: string][];
  initial?: string;
  pattern?: string;
  min?: number;
  max?: number;
  /** is shown if this event is chosen */
  event?: string;
  /** is under “More settings” */
  more?: boolean;
}

// Preset is a way to fill in a kind.
export interface Preset {
  id: string;
  kind: string;
  title: string;
  /** where the address or the credentials are found */
  where?: { text: string; link?: string };
  inputs: Input[];
  /** what is not delivered, “message” by default */
  unit?: string;
  /** is told of chosen events */
  events?: boolean;
  /** the values of the kind's fields, if the inputs are others */
  values?: (typed: Record<string, string>) => Record<string, string>;
  /** reports whether stored settings are of this preset of the kind */
  has?: (settings: Record<string, string>) => boolean;
  /** the inputs of stored settings */
  typed?: (settings: Record<string, string>) => Record<string, string>;
}

const hook = (placeholder: string): Input => ({
  name: "url",
  label: "Webhook URL",
  type: "url",
  secret: true,
  required: true,
  placeholder,
});

const addresses: Input[] = [
  {
    name: "from",
    label: "From",
    required: true,
    placeholder: "weir <weir@example.com>",
    hint: "A verified sender address.",
  },
  { name: "to", label: "To", required: true, placeholder: "you@example.com", hint: "Separate several with commas." },
];

// moments are the inputs that all notifications have: when they are sent.
const moments: Input[] = [
  {
    name: "coolingMinutes",
    label: "Limited for (minutes)",
    type: "number",
    min: 1,
    max: 10080,
    event: "account.cooling",
    placeholder: "15",
  },
  {
    name: "errorPercent",
    label: "Failed requests (%)",
    type: "number",
    min: 1,
    max: 100,
    event: "errors.rate",
    placeholder: "50",
  },
  {
    name: "quietHours",
    label: "Quiet hours",
    placeholder: "22:00-07:00",
    hint: "In the time zone of the settings. Messages are held, and sent as one afterwards.",
    pattern: "([01]\\d|2[0-3]):[0-5]\\d ?- ?([01]\\d|2[0-3]):[0-5]\\d",
  },
];

// notifications are the targets of messages.
export const notifications: Preset[] = (
  [
    {
      id: "slack",
      kind: "slack",
      title: "Slack",
      where: {
        text: "Create an incoming webhook for a channel.",
        link: "https://api.slack.com/apps?new_app=1",
      },
      inputs: [hook("https://hooks.slack.com/services/…")],
    },
    {
      id: "discord",
      kind: "discord",
      title: "Discord",
      where: {
        text: "In the channel’s settings, open Integrations, then Webhooks.",
        link: "https://support.discord.com/hc/en-us/articles/228383668",
      },
      inputs: [hook("https://discord.com/api/webhooks/…")],
    },
    {
      id: "teams",
      kind: "teams",
      title: "Microsoft Teams",
      where: {
        text: "In the channel’s menu, open Workflows and use “Post to a channel when a webhook request is received”.",
        link: "https://support.microsoft.com/en-us/office/creating-a-workflow-from-a-channel-in-teams-242eb8f2-f328-45be-b81f-9817b51a5f0e",
      },
      inputs: [hook("https://….logic.azure.com/workflows/…")],
    },
    {
      id: "google-chat",
      kind: "google-chat",
      title: "Google Chat",
      where: {
        text: "In the space’s menu, open Apps & integrations, then Webhooks.",
        link: "https://developers.google.com/workspace/chat/quickstart/webhooks",
      },
      inputs: [hook("https://chat.googleapis.com/v1/spaces/…")],
    },
    {
      id: "ntfy",
      kind: "ntfy",
      title: "ntfy",
      where: {
        text: "Choose a topic name that is hard to guess, and subscribe to it in the app.",
        link: "https://docs.ntfy.sh/publish/",
      },
      inputs: [
        { ...hook("https://ntfy.sh/your-topic"), label: "Topic URL" },
        {
          name: "token",
          label: "Access token",
          secret: true,
          hint: "Only for a protected topic.",
          placeholder: "tk_…",
        },
      ],
    },
    {
      id: "webhook",
      kind: "webhook",
      title: "Webhook",
      where: {
        text: "JSON, signed as in the Standard Webhooks specification.",
        link: "https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md",
      },
      inputs: [hook("https://")],
    },
    {
      id: "email",
      kind: "email",
      title: "E-mail (mail service)",
      where: { text: "Sent through the HTTP API of a mail service, with your own token." },
      inputs: [
        {
          name: "service",
          label: "Service",
          choices: [
            ["resend", "Resend"],
            ["postmark", "Postmark"],
            ["sendgrid", "SendGrid"],
            ["mailgun", "Mailgun"],
          ],
          initial: "resend",
        },
        { name: "token", label: "API token", secret: true, required: true },
        ...addresses,
        { name: "domain", label: "Domain", hint: "Of Mailgun.", placeholder: "mg.example.com", more: true },
        {
          name: "region",
          label: "Region",
          hint: "Of Mailgun.",
          choices: [
            ["", "Default"],
            ["us", "United States"],
            ["eu", "European Union"],
          ],
          more: true,
        },
      ],
    },
    {
      id: "smtp",
      kind: "smtp",
      title: "E-mail (SMTP)",
      where: { text: "Sent through your mail server." },
      inputs: [
        { name: "host", label: "Server", required: true, placeholder: "smtp.example.com" },
        { name: "port", label: "Port", type: "number", required: true, min: 1, max: 65535, initial: "587" },
        {
          name: "tls",
          label: "Encryption",
          choices: [
            ["starttls", "STARTTLS"],
            ["tls", "TLS (port 465)"],
            ["none", "None"],
          ],
          initial: "starttls",
        },
        { name: "user", label: "User" },
        { name: "password", label: "Password", secret: true },
        ...addresses,
      ],
    },
  ] satisfies Preset[]
).map((p: Preset) => ({ ...p, events: true, inputs: [...p.inputs, ...moments] }));

const bucket: Input = {
  name: "bucket",
  label: "Bucket",
  required: true,
  pattern: "[a-z0-9][a-z0-9.\\-]{1,61}[a-z0-9]",
  placeholder: "weir-logs",
};
const prefix: Input = {
  name: "prefix",
  label: "Folder",
  hint: "Prefix of the object names. Leave empty for none.",
  placeholder: "weir",
  pattern: "[A-Za-z0-9._\\-]+(/[A-Za-z0-9._\\-]+)*",
};
const accessKey: Input[] = [
  { name: "accessKeyId", label: "Access key ID", required: true },
  { name: "secretAccessKey", label: "Secret access key", secret: true, required: true },
];
const bodies = (hint: string): Input => ({
  name: "bodies",
  label: "Send stored prompts and answers",
  type: "checkbox",
  hint: `What was asked and answered in the requests that “Stored prompts” covers, with credentials masked. ${hint}`,
});
const objects = bodies("Each is an object of its own in the folder “bodies”.");
const awsEndpoint = /^https:\/\/s3\.([a-z0-9-]+)\.amazonaws\.com\/?$/;
const r2Endpoint = /^https:\/\/([0-9a-f]{32})(?:\.(eu|fedramp))?\.r2\.cloudflarestorage\.com\/?$/;
// A bucket whose name has dots has no certificate as a host.
const awsStyle = (bucket: string) => (bucket.includes(".") ? "path" : "virtual");

// exports are the targets of telemetry and of the log of requests.
export const exports: Preset[] = [
  {
    id: "otlp",
    kind: "otlp",
    title: "OpenTelemetry",
    where: { text: "Traces, metrics and logs by OTLP over HTTP.", link: "/docs/guides/opentelemetry" },
    inputs: [
      {
        name: "endpoint",
        label: "Endpoint",
        type: "url",
        required: true,
        secret: true,
        placeholder: "https://otlp.example.com",
        hint: "/v1/traces, /v1/metrics and /v1/logs are added.",
      },
      {
        name: "headers",
        label: "Headers",
        secret: true,
        placeholder: "Authorization=Bearer%20…",
        hint: "name=value, separated by commas, percent-encoded as OTEL_EXPORTER_OTLP_HEADERS is.",
      },
      {
        name: "signals",
        label: "Send",
        choices: [
          ["", "Everything"],
          ["traces", "Traces"],
          ["metrics", "Metrics"],
          ["logs", "Logs of failures"],
          ["traces,logs", "Traces and logs of failures"],
          ["traces,metrics", "Traces and metrics"],
          ["metrics,logs", "Metrics and logs of failures"],
        ],
      },
      {
        name: "sample",
        label: "Share of traces (%)",
        type: "number",
        min: 0,
        max: 100,
        placeholder: "100",
        hint: "Failures are always sent.",
      },
      {
        name: "protocol",
        label: "Format",
        choices: [
          ["", "Protobuf"],
          ["http/json", "JSON"],
        ],
        more: true,
      },
      {
        name: "temporality",
        label: "Metric temporality",
        choices: [
          ["", "Default"],
          ["delta", "Delta (Datadog, Dynatrace)"],
          ["cumulative", "Cumulative (Prometheus)"],
        ],
        more: true,
      },
      {
        name: "conventions",
        label: "GenAI metric names",
        choices: [
          ["", "0.1.0"],
          ["1.41", "1.41 and earlier"],
        ],
        more: true,
      },
      {
        name: "resource",
        label: "Resource attributes",
        placeholder: "service.name=weir,deployment.environment.name=prod",
        more: true,
      },
      bodies("Needs logs."),
    ],
    unit: "entry",
  },
  {
    id: "aws",
    kind: "s3",
    title: "Amazon S3",
    where: {
      text: "A user whose policy allows s3:PutObject on this bucket is enough.",
      link: "/docs/guides/log-export",
    },
    inputs: [
      { name: "region", label: "Region", required: true, placeholder: "eu-central-1" },
      bucket,
      prefix,
      ...accessKey,
      objects,
    ],
    values: (v) => ({ ...v, endpoint: `https://s3.${v.region}.amazonaws.com`, style: awsStyle(v.bucket) }),
    unit: "request",
    has: (o) => awsEndpoint.test(o.endpoint ?? ""),
  },
  {
    id: "r2",
    kind: "s3",
    title: "Cloudflare R2",
    where: {
      text: "Under R2, Manage API tokens, create a token with “Object Read & Write” for this bucket.",
      link: "https://dash.cloudflare.com/?to=/:account/r2/api-tokens",
    },
    inputs: [
      {
        name: "account",
        label: "Account ID",
        required: true,
        pattern: "[0-9a-f]{32}",
        placeholder: "32 characters, beside the bucket’s name",
      },
      {
        name: "jurisdiction",
        label: "Jurisdiction",
        choices: [
          ["", "Default"],
          ["eu", "European Union"],
          ["fedramp", "FedRAMP"],
        ],
      },
      bucket,
      prefix,
      ...accessKey,
      objects,
    ],
    values: ({ account, jurisdiction, ...v }) => ({
      ...v,
      endpoint: `https://${account}${jurisdiction ? `.${jurisdiction}` : ""}.r2.cloudflarestorage.com`,
      region: "auto",
      style: "path",
    }),
    unit: "request",
    has: (o) => r2Endpoint.test(o.endpoint ?? ""),
    typed: (o) => {
      const [, account = "", jurisdiction = ""] = r2Endpoint.exec(o.endpoint) ?? [];
      return { ...o, account, jurisdiction };
    },
  },
  {
    id: "s3",
    kind: "s3",
    title: "Other S3-compatible storage",
    where: { text: "MinIO, Backblaze B2, Wasabi, Ceph and others.", link: "/docs/guides/log-export" },
    inputs: [
      { name: "endpoint", label: "Endpoint", type: "url", required: true, placeholder: "https://s3.example.com" },
      { name: "region", label: "Region", required: true, initial: "us-east-1" },
      {
        name: "style",
        label: "Bucket URL style",
        choices: [
          ["path", "Path-style"],
          ["virtual", "Virtual-hosted-style"],
        ],
        initial: "path",
      },
      bucket,
      prefix,
      ...accessKey,
      objects,
    ],
    unit: "request",
  },
];

// presetOf returns the preset of a stored destination.
export function presetOf(kind: string, settings: Record<string, string>): Preset | undefined {
  const all = [...notifications, ...exports].filter((p) => p.kind === kind);
  return all.find((p) => p.has?.(settings)) ?? all.find((p) => !p.has);
}
