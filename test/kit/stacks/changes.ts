import { isSecret } from '../../../providers/pulumi/stack-state.ts';
import type { Properties } from '../cloud/model.ts';

/** As an engine's events show values: secrets are not to be seen. */
export function masked(value: unknown): unknown {
  if (isSecret(value)) return '[secret]';
  if (Array.isArray(value)) return value.map(masked);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, masked(field)]));
}

/** A program's inputs, with what it does not care about as the state has it (`ignoreChanges`; paths as `a.b`). */
export function ignoring(inputs: Properties, before: Properties, paths: readonly string[]): Properties {
  const after = structuredClone(inputs);
  for (const path of paths) {
    const steps = path.split('.');
    const last = steps.pop()!;
    const within = (root: Properties): Properties | undefined =>
      steps.reduce<Properties | undefined>((at, step) => at?.[step], root);
    const [from, to] = [within(before), within(after)];
    if (!to) continue;
    if (from?.[last] === undefined) delete to[last];
    else to[last] = structuredClone(from[last]);
  }
  return after;
}

/** The property that a path such as `vpcConfig.subnetIds[0]` begins with. */
export const topOf = (path: string): string => /^[^.[]+/.exec(path)?.[0] ?? path;
