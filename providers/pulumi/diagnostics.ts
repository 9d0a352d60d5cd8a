import { CoppiceError, type ErrorCode } from '../../operator/api/errors.ts';
import type { Classify, Diagnostic, StackRequest } from './request.ts';
import type { Failed } from './worker-protocol.ts';

/** Longest diagnostic: longer texts repeat themselves, or quote a whole answer of the cloud. */
const LONGEST = 400;

/** The engine's summaries of a failed run, which add nothing to earlier diagnostics. */
const EMPTY_PHRASES =
  /^(preview|update|refresh|destroy) (failed|canceled)$|^one or more errors occurred|^resource monitor shut down|^an unhandled error occurred: program exited/i;

interface KnownProblem {
  says: RegExp;
  code: ErrorCode;
  advice?: string;
}

/** Failures of the engine itself, in any cloud. */
const ENGINE_PROBLEMS: KnownProblem[] = [
  {
    says: /no \w+ plugin '|could not (?:find|download|install) plugin|failed to (?:load|install|download) plugin|automatic (?:plugin )?(?:acquisition|installation)/i,
    code: 'ERR_RETRYABLE_CONFIGURATION_PROBLEM',
    advice:
      'The provider plugin is not installed. Let the operator reach get.pulumi.com and github.com, or unpack the release of that version into plugins/resource-<name>-v<version> in its Pulumi home.',
  },
  {
    says: /incorrect passphrase|passphrase must be set/i,
    code: 'ERR_CONFIGURATION_PROBLEM',
    advice: "Give the state backend the passphrase that the stack's state was encrypted with.",
  },
  {
    says: /unable to open bucket|blob \(key .*\) \(code=|read .*\.pulumi.*: (?:permission denied|input\/output error)|could not (?:list|read) bucket/i,
    code: 'ERR_RETRYABLE_INFRA_DEPENDENCIES',
    advice: 'The state backend does not answer: check its URL and credentials; it is tried again by itself.',
  },
];

/** One line of a diagnostic, without colours, source positions, stack and repetitions. Pure. */
export function diagnosticLine(text: string): string {
  const lines = text
    .replaceAll(/<\{%.*?%\}>/g, '')
    .split('\n')
    // Drop stack traces.
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^at .+(:\d+|\))$/.test(line) && !/^\d+ errors? occurred:$/.test(line))
    .map((line) => line.replace(/^\* /, '').replace(/^(?:error: |Unhandled exception: (?:Error: )?)/i, ''))
    // Terraform-based providers prefix their source position and append their version.
    .map((line) => line.replace(/^\S+\.go:\d+: \S+: /, '').replace(/: provider=\S+$/, ''));
  return [...new Set(lines)].join(' ').replaceAll(/\s+/g, ' ').replace(/[.:]$/, '');
}

const shortened = (line: string): string => (line.length <= LONGEST ? line : `${line.slice(0, LONGEST - 1)}…`);

/** Meaningful diagnostics, each once. */
export function tellingDiagnostics(said: readonly Diagnostic[], redact: (text: string) => string): Diagnostic[] {
  const seen = new Set<string>();
  return said
    .map((diagnostic) => ({ ...diagnostic, text: diagnosticLine(redact(diagnostic.text)) }))
    .filter(({ text }) => {
      if (text === '' || EMPTY_PHRASES.test(text) || seen.has(text)) return false;
      seen.add(text);
      return true;
    });
}

/** Errors in the engine's output, for a failure without an event. Pure. */
export function errorsIn({ kind, output }: Pick<Failed, 'kind' | 'output'>): Diagnostic[] {
  // The first line is ours; the rest is output of the dying process.
  if (kind !== 'engine') return [{ text: output.split('\n')[0]! }];
  const lines = output.split('\n').map((line) => line.trim());
  const errors = lines.filter((line) => /^error: /i.test(line));
  const last = lines.filter((line) => line !== '').at(-1);
  return (errors.length > 0 ? errors : last ? [last] : []).map((text) => ({ text }));
}

/**
 * Error of a failed run: the first diagnostic, and the number of others. A CoppiceError where the provider's classifier
 * or the engine's table knows the cause; else a plain Error.
 */
export function failureOf(
  what: string,
  said: readonly Diagnostic[],
  { classify, shortOf }: Pick<StackRequest, 'classify' | 'shortOf'> = {},
): Error {
  const classified = said.map((diagnostic) => ({ ...diagnostic, ...judge(diagnostic, classify) }));
  const first = classified.find(({ code }) => code !== undefined) ?? classified[0];
  if (!first) return new Error(`${what} failed, and the engine did not say why`);
  const more = classified.length > 1 ? ` (and ${classified.length - 1} more)` : '';
  const message = `${what} failed: ${shortened(first.text)}${more}`;
  if (!first.code) return new Error(message);
  // Pools are made in parallel: several may be sold out.
  const depleted = classified.filter(({ code }) => code === 'ERR_INFRA_RESOURCES_DEPLETED' && code === first.code);
  const shortages = depleted.flatMap((diagnostic) => shortOf?.(diagnostic) ?? []);
  return new CoppiceError(first.code, message, { shortages, ...(first.advice && { advice: first.advice }) });
}

function judge(diagnostic: Diagnostic, classify: Classify | undefined): { code?: ErrorCode; advice?: string } {
  const code = classify?.(diagnostic);
  if (code) return { code };
  return ENGINE_PROBLEMS.find(({ says }) => says.test(diagnostic.text)) ?? {};
}
