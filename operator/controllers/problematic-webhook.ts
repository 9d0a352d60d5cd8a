import { CoppiceError, type ErrorCode, errorText } from '../api/errors.ts';

/** API server's text about a webhook that refused or did not answer. */
const WEBHOOK = /\b(?:calling webhook|admission webhook) "([^"]{1,253})"/;
/** In a dry run the webhook was not called. */
const NOT_ASKED = /does not support dry run/;

/** Webhook of the cluster that caused a failed request, by the API server's text; undefined: none. */
export const webhookIn = (text: string): string | undefined =>
  NOT_ASKED.test(text) ? undefined : WEBHOOK.exec(text)?.[1];

/** Codes of a condition that contains an API server's text. */
export const codesOfRefusal = (text: string): ErrorCode[] => (webhookIn(text) ? ['ERR_PROBLEMATIC_WEBHOOK'] : []);

/**
 * The error with its code if a webhook caused it; else unchanged. The operator never changes or deletes a tenant's
 * webhook, whose purpose only the tenant knows.
 */
export function explainWebhook(error: unknown): unknown {
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

/** Reason and message of a condition about manifests that admission of the cluster refused. @param what the manifests, a noun */
export function refusalByAdmission(text: string, what: string) {
  const name = webhookIn(text);
  if (name === undefined)
    return {
      reason: 'RefusedByAdmission',
      message: `an admission policy of the cluster refuses ${what}. Exempt namespace kube-system from that policy: ${text}`,
    } as const;
  return {
    reason: 'ProblematicWebhook',
    message: `webhook "${name}" of the cluster refuses ${what}, or does not answer. Repair its server, or exempt namespace kube-system from it: ${text}`,
  } as const;
}
