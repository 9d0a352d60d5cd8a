/** Replacement of a secret. */
const REDACTED = '[secret]';

/** Shortest redacted value: shorter ones are no real secrets, and would damage every text. */
const SHORTEST = 6;
/** Secret fields of JSON credentials (Google's). */
const SECRET_FIELD = /key|secret|token|password|assertion/i;

/** All forms in which a secret may occur in a text: plain, escaped, encoded, or one of its lines. */
function formsOf(secret: string): string[] {
  const lines = secret.includes('\n') ? secret.split('\n').map((line) => line.trim()) : [];
  return [
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret),
    Buffer.from(secret).toString('base64'),
    // First and last line of a PEM are not secret.
    ...lines.filter((line) => !line.startsWith('-----')),
  ];
}

function secretsWithin(value: string): string[] {
  if (!value.trimStart().startsWith('{')) return [];
  try {
    return Object.entries(JSON.parse(value) as Record<string, unknown>)
      .filter((entry): entry is [string, string] => SECRET_FIELD.test(entry[0]) && typeof entry[1] === 'string')
      .map(([, field]) => field);
  } catch {
    return [];
  }
}

/**
 * Returns a function that redacts secrets in texts. Longest first, so that nothing remains of a secret that contains
 * another.
 */
export function makeRedactor(secrets: Iterable<string | undefined>): (text: string) => string {
  const forms = new Set<string>();
  for (const secret of secrets) {
    if (!secret) continue;
    for (const part of [secret, ...secretsWithin(secret)]) {
      for (const form of formsOf(part)) if (form.length >= SHORTEST) forms.add(form);
    }
  }
  const ordered = [...forms].sort((a, b) => b.length - a.length);
  return (text) => ordered.reduce((rest, form) => rest.replaceAll(form, REDACTED), text);
}
