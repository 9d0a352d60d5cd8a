import { CoppiceError, type ErrorCode, errorText } from '../api/errors.ts';

/** What an API server says of a webhook that refused a request, or that did not answer. */
const WEBHOOK = /\b(?:calling webhook|admission webhook) "([^"]{1,253})"/;
/** Of a trial: the webhook was not asked at all. */
const NOT_ASKED = /does not support dry run/;

/** Name of the webhook of a cluster because of which a request failed, as the API server said it; undefined: no webhook had a part in it. */
export const webhookIn = (text: string): string | undefined =>
  NOT_ASKED.test(text) ? undefined : WEBHOOK.exec(text)?.[1];

/** Codes of a condition that passes on what an API server said. */
export const codesOfRefusal = (text: string): ErrorCode[] => (webhookIn(text) ? ['ERR_PROBLEMATIC_WEBHOOK'] : []);

/**
 * The error with its code, where a webhook of the cluster caused it; another one as it is. The operator neither changes nor deletes a webhook:
 * it is the tenant's, who alone knows what it protects.
 */
export function explained(error: unknown): unknown {
  if (error instanceof CoppiceError && error.code === 'ERR_PROBLEMATIC_WEBHOOK') return error;
  const text = error instanceof CoppiceError ? error.message : errorText(error);
  const name = webhookIn(text);
  return name === undefined
    ? error
    : new CoppiceError(
        'ERR_PROBLEMATIC_WEBHOOK',
        `webhook "${name}" of the cluster refuses, or does not answer: ${text}`,
        {
          cause: error,
        },
      );
}
