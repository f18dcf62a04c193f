import type { Machine } from "../../api";
import type { ModelInfo, ModelRow, PriceVariant } from "../../api-types";
import { Dialog } from "../../dialog";
import { price } from "../../amounts";
import { number } from "../../format";
import { useAction, useLoad } from "../../hooks";
import { kindNames } from "../../kinds";
import { Code } from "../../code";
import { Load } from "../../layout";
import { Health } from "../../timeline";
import { Badge, Button, ErrorBox } from "../../ui";
import { canDisable, disable, TryLink } from "./actions";

// unitOf returns what a price of this name is for.
function unitOf(name: string) {
  if (name === "character") return "per million";
  return ["image", "second", "request", "search", "grounded", "maps", "file_search", "code"].includes(name)
    ? "each"
    : "per million tokens";
}

// priceLines returns a line for each rate, those on other terms last.
function priceLines(pricing: NonNullable<ModelInfo["pricing"]>): string[] {
  const { variants = [], ...usual } = pricing;
  const lines = (rates: PriceVariant, terms: string) =>
    Object.entries(rates).flatMap(([k, v]) =>
      typeof v === "number" ? [`${k.replaceAll("_", " ")}: ${price(v)} ${unitOf(k)}${terms}`] : [],
    );
  return [
    ...lines(usual as PriceVariant, ""),
    ...(variants as PriceVariant[]).flatMap(({ above_input_tokens: above, service_tier: tier, options, ...rates }) =>
      lines(
        rates,
        [
          above && `, above ${number(above as number)} input tokens`,
          tier && `, service tier ${tier as string}`,
          options && `, ${(options as string[]).join(", ")}`,
        ]
          .filter(Boolean)
          .join(""),
      ),
    ),
  ];
}

// Detail shows the limits, modalities and prices of a model.
export function Detail({
  machine,
  m,
  segment,
  callable,
  onPrice,
  onClose,
  onChange,
}: {
  machine: Machine;
  m: ModelRow;
  segment: string;
  /** an account is connected */
  callable: boolean;
  onPrice: () => void;
  onClose: () => void;
  onChange: () => Promise<void>;
}) {
  const hide = useAction();
  const info = useLoad(
    () => machine.get<ModelInfo>(`/models/info?id=${encodeURIComponent(m.id)}&kind=${m.kind ?? segment}`),
    [m.id],
  );
  const limits = (i: ModelInfo) =>
    [
      i.context_length && `${number(i.context_length)} tokens of context`,
      i.max_completion_tokens && `${number(i.max_completion_tokens)} max output tokens`,
      i.dimensions && `${number(i.dimensions)} dimensions`,
    ]
      .filter(Boolean)
      .join(", ");
  return (
    <Dialog title={m.id} onClose={onClose} wide>
      <Load of={info} what="model" rows={2}>
        {(i) => (
          <>
            <dl class="facts">
              {i.name && i.name !== i.id && (
                <>
                  <dt>Name</dt>
                  <dd>{i.name}</dd>
                </>
              )}
              <dt>Kind</dt>
              <dd>{kindNames[i.kind ?? ""] ?? i.kind}</dd>
              <dt>Endpoint</dt>
              <dd>{i.endpoint ? <code>{i.endpoint}</code> : "None"}</dd>
              <dt>Limits</dt>
              <dd>{limits(i) || "Unknown"}</dd>
              <dt>Input</dt>
              <dd>{i.input_modalities?.join(", ") || "Unknown"}</dd>
              <dt>Output</dt>
              <dd>{i.output_modalities?.join(", ") || "Unknown"}</dd>
              <dt>Price</dt>
              <dd>
                {i.pricing ? priceLines(i.pricing).map((line) => <div key={line}>{line}</div>) : "Unknown"}{" "}
                {!i.pricing && machine.may("editor") && canDisable(m) && (
                  <Button kind="link" changes="/settings" onClick={onPrice}>
                    Set price
                  </Button>
                )}
              </dd>
            </dl>
            {i.params && i.params.length > 0 && (
              <>
                <h3>Request fields</h3>
                <p class="badges">
                  {i.params.map((p) => (
                    <Badge key={p}>{p}</Badge>
                  ))}
                </p>
              </>
            )}
            <Code label="Model ID" text={i.id} />
            {callable && canDisable(m) && (
              <Health machine={machine} filter={`model=${encodeURIComponent(m.id)}`} what={m.id} />
            )}
            <div class="row">
              {callable && <TryLink machine={machine} m={m} segment={segment} />}
              {canDisable(m) && (
                <Button
                  busy={hide.busy}
                  changes="/models/disabled"
                  onClick={() =>
                    void hide.run(async () => {
                      await disable(machine, m, onChange);
                      onClose();
                    })
                  }
                >
                  Disable
                </Button>
              )}
            </div>
            {hide.error && <ErrorBox>{hide.error}</ErrorBox>}
          </>
        )}
      </Load>
    </Dialog>
  );
}
