import { useMemo, useState } from "preact/hooks";
import { ask } from "../../client";
import { family } from "../../connections";
import type { TryProps } from "./call";

interface Voice {
  id: string;
  name: string;
  lang: string;
  gender: string;
  model: string;
}

// useVoices returns the voices of a model, or none if its provider has no list. The
// call needs the playground's key, so it is not made before load is called.
export function useVoices(
  machine: TryProps["machine"],
  provider: string,
  model: string,
): { voices: Voice[]; load: () => Promise<Voice[]> } {
  const [list, set] = useState<{ of: string; voices: Voice[] } | null>(null);
  // Some providers have one model per voice, with only that voice.
  const fit = (all: Voice[]) =>
    all.filter((v) => !v.model.endsWith(`/${v.id}/${v.id}`) || v.model === `${model}/${v.id}`);
  const voices = useMemo(() => fit(list?.of === provider ? list.voices : []), [list, provider, model]);
  const load = async () => {
    if (!provider || family(provider)) return [];
    if (list?.of === provider) return voices;
    const res = await ask(machine, `/v1/audio/voices?provider=${encodeURIComponent(provider)}`);
    const all = res.ok ? ((await res.json()) as { data: Voice[] }).data : [];
    set({ of: provider, voices: all });
    return fit(all);
  };
  return { voices, load };
}
