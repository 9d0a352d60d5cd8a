/** What stands in place of a secret. */
const REDACTED = '[secret]';

/** Shorter values would tear holes into every text and are no secrets worth the name. */
const SHORTEST = 6;
/** Of credentials that are JSON documents (Google's): fields whose values are secret. */
const SECRET_FIELD = /key|secret|token|password|assertion/i;

/** Every form in which a secret may turn up in a text: as it is, escaped, encoded, or one line of it. */
function formsOf(secret: string): string[] {
  const lines = secret.includes('\n') ? secret.split('\n').map((line) => line.trim()) : [];
  return [
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret),
    Buffer.from(secret).toString('base64'),
    // The first and the last line of a PEM say what it is, and nothing else.
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

/** A function that cuts secrets out of texts. Longest first, so that a secret within another leaves nothing of it. */
export function redactor(secrets: Iterable<string | undefined>): (text: string) => string {
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
