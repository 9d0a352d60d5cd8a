import { z } from 'zod';
import { CRON } from './cron.ts';

/** A CEL rule as a CRD carries it. */
export interface Rule {
  rule: string;
  message?: string;
  messageExpression?: string;
  reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate';
  fieldPath?: string;
}

/** Adds the text that `kubectl explain` shows. */
export const describe = <T extends z.ZodType>(schema: T, description: string): T =>
  schema.meta({ ...schema.meta(), description });

/** Adds CEL rules; repeated calls add up. */
export function rules<T extends z.ZodType>(schema: T, ...added: Rule[]): T {
  const meta = schema.meta() ?? {};
  const before = (meta['x-kubernetes-validations'] as Rule[] | undefined) ?? [];
  return schema.meta({ ...meta, 'x-kubernetes-validations': [...before, ...added] });
}

/** Marks a schema whose rules, and those within, the CRD leaves out. */
export const WITHOUT_RULES = 'x-coppice-without-rules';

/**
 * The same without CEL rules, for what is only a template: those of many templates cost an API server too much, and rules about what may
 * change are not for it. Whoever makes something of it has the API server try it.
 */
export const withoutRules = <T extends z.ZodType>(schema: T): T =>
  schema.meta({ ...schema.meta(), [WITHOUT_RULES]: true });

/** Text of at most `max` characters. Everything is bounded, or the API server refuses CEL rules over it as too costly. */
export const text = (max: number, description: string, pattern?: RegExp) =>
  (pattern ? z.string().max(max).regex(pattern) : z.string().max(max)).describe(description);

/** Text that may not be empty. */
export const name = (max: number, description: string, pattern?: RegExp) =>
  (pattern ? z.string().min(1).max(max).regex(pattern) : z.string().min(1).max(max)).describe(description);

/** A whole number; without `max` it is a 64-bit one. */
export const count = (min: number, max: number | undefined, description: string) =>
  (max === undefined ? z.int().min(min) : z.int().min(min).max(max)).describe(description);

/** A list of at most `max` items. */
export const list = <T extends z.ZodType>(item: T, max: number, description: string) =>
  z.array(item).max(max).describe(description);

/** A list that server-side apply merges by `key`, in which no key may occur twice. */
export const keyed = <T extends z.ZodType>(item: T, max: number, key: string, description: string) =>
  list(item, max, description).meta({
    description,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': [key],
  });

/** Labels of Kubernetes. */
export const labels = (max: number, description: string) =>
  rules(
    z
      .record(z.string(), z.string().max(LIMITS.label).regex(PATTERNS.labelValue))
      .meta({ description, maxProperties: max }),
    {
      rule: `self.all(k, k.matches('${PATTERNS.labelKey.source.replaceAll('\\/', '/')}'))`,
      message:
        'the key of a label is a name of at most 63 letters, digits, "-", "_" and "."; a domain and "/" may precede it',
    },
  );

/** Text to text, as annotations are. */
export const map = (max: number, description: string) =>
  z.record(z.string(), z.string().max(4096)).meta({ description, maxProperties: max });

/** An object that is kept as it was written; we know nothing of its fields. */
export const free = (description: string) =>
  z.record(z.string(), z.unknown()).meta({ description, 'x-kubernetes-preserve-unknown-fields': true });

/** A number or text. */
export const intOrString = (description: string) =>
  z.union([z.int(), z.string().max(64)]).meta({ description, 'x-kubernetes-int-or-string': true });

/** A number, or text of this form. */
const notNegative = (pattern: RegExp, description: string) =>
  intOrString(description).meta({
    description,
    'x-kubernetes-int-or-string': true,
    pattern: pattern.source,
    minimum: 0,
  });

/** A Kubernetes quantity that is not negative ("500m", 2). */
export const quantity = (description: string) => notNegative(PATTERNS.quantity, description);

/** So many, or a part of all ("25%", 1). */
export const countOrPercent = (description: string, pattern = /^[0-9]+%?$/) => notNegative(pattern, description);

/** The priorities that pods may have, those of Kubernetes itself too. */
export const POD_PRIORITY = { least: -(2 ** 31), most: 2 ** 31 - 1 } as const;

/** An address range. No `format`: an API server lets a list through where text has one. */
export const cidr = (description: string) =>
  rules(name(64, description, PATTERNS.cidr), {
    rule: 'isCIDR(self)',
    message: 'must be an address range, for example 10.0.0.0/16',
  });

/** An address range of IPv4. */
export const cidrV4 = (description: string) =>
  rules(name(18, description, PATTERNS.cidr), {
    rule: 'isCIDR(self) && cidr(self).ip().family() == 4',
    message: 'must be a range of IPv4 addresses, for example 10.0.0.0/8',
  });

/** CEL: whether a value has the form of a pattern. */
export const matches = (value: string, pattern: RegExp): string =>
  `${value}.matches('${pattern.source.replaceAll('\\', '\\\\')}')`;

/** Marks text whose form a rule tells people in words: an API server would answer with the pattern itself. */
export const FORM_IN_WORDS = 'x-coppice-form-in-words';

/** Text of a form that an API server names in words. Further rules are asked where the form is right. */
const worded = (max: number, pattern: RegExp, description: string, message: string, ...further: Rule[]) =>
  rules(
    name(max, description, pattern).meta({ description, [FORM_IN_WORDS]: true }),
    { rule: matches('self', pattern), message },
    ...further.map((one) => ({ ...one, rule: `!${matches('self', pattern)} || (${one.rule})` })),
  );

const DURATION_FORM =
  'must be a duration longer than 0 and shorter than 292 years: hours, minutes and seconds, for example 48h or 1h30m';

/** A Go duration that is longer than nothing, and short enough to be reckoned with (292 years). */
export const duration = (description: string) =>
  worded(LIMITS.duration, PATTERNS.duration, description, DURATION_FORM, {
    rule: "duration(self) > duration('0s')",
    message: DURATION_FORM,
  });

/** A version of Kubernetes, whole or as a minor. */
export const kubernetesVersion = (description: string, ...further: Rule[]) =>
  worded(
    LIMITS.version,
    PATTERNS.version,
    description,
    'must be a version without v, for example 1.36.3, or 1.36 for its newest patch',
    ...further,
  );

/** A time zone, as Kubernetes' API server has them within itself for CronJobs. */
export const timeZone = (description: string) =>
  rules(text(64, description, PATTERNS.timeZone), {
    rule: "timestamp('2026-01-01T00:00:00Z').getFullYear(self) > 0",
    message: 'must be a time zone, for example Europe/Berlin',
  });

const NO_CRON =
  'must be a cron expression: minute, hour, day of month, month and day of week, for example 0 20 * * MON-FRI';

/** A cron expression. No `pattern`: an API server would answer with all of it, in which nobody finds what is wrong. */
export const cronExpression = (description: string) =>
  rules(
    z
      .string()
      .max(128)
      .refine((value) => CRON.test(value), NO_CRON)
      .describe(description),
    { rule: `self.matches(r'(?i)${CRON.source}')`, message: NO_CRON },
  );

/** A region or a zone, in which names of clouds differ: eu-central-1a, westeurope, RegionOne, 1. */
export const place = (description: string) => name(LIMITS.label, description, PATTERNS.place);

/** A machine type: m5.large, n2-standard-4, Standard_D4s_v5. */
export const machineTypeName = (description: string) => name(63, description, PATTERNS.machineType);

/** Name of another object. */
export const objectName = (description: string) => name(LIMITS.name, description, PATTERNS.objectName);

/** Name of a namespace, or of an object whose name is a label. */
export const labelName = (description: string) => name(LIMITS.label, description, PATTERNS.label);

/** Patterns must be understood by Go's RE2 as well: no look-ahead, no back references. */
export const PATTERNS = {
  /** RFC 1123 label. */
  label: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
  /** Kubernetes version; the patch may be left out. */
  version: /^[0-9]+\.[0-9]+(\.[0-9]+)?$/,
  /** Go duration, for example 1h30m. */
  duration: /^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$/,
  /** What may be part of a host name. */
  place: /^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$/,
  machineType: /^[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$/,
  /** RFC 1123 subdomain. */
  objectName: /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/,
  /** Key of a label or taint: an optional domain and a name. */
  labelKey: /^([a-z0-9]([-.a-z0-9]*[a-z0-9])?\/)?[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$/,
  labelValue: /^([A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?)?$/,
  cidr: /^[0-9a-fA-F.:]+\/[0-9]{1,3}$/,
  /** Of a number that is not negative. */
  quantity: /^[+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,3})?$/,
  /** RFC 3339. */
  time: /^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$/,
  /** IANA's name, or an offset. */
  timeZone: /^([A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+){0,2}|[+-][0-9]{2}:[0-9]{2})$/,
  /** HHMMSS+ZZZZ. */
  timeOfDay: /^([01][0-9]|2[0-3])[0-5][0-9][0-5][0-9][+-](0[0-9]|1[0-4])[0-5][0-9]$/,
} as const;

/** How many characters may a label's, a version's, a duration's text have. */
export const LIMITS = { label: 63, name: 253, version: 32, duration: 32 } as const;

const FIXED = 'after creation: make a new cluster instead';

/** CEL: whether the (nested) field is there; parents that are missing count as a missing field. */
const present = (object: string, path: readonly string[]): string =>
  path.map((_, depth) => `has(${[object, ...path.slice(0, depth + 1)].join('.')})`).join(' && ');

/** The rule that an optional field, given from the spec down, is never changed, added or removed. */
export function fixedAtCreation(...path: string[]): Rule {
  const [before, after] = [present('oldSelf', path), present('self', path)];
  const field = path.join('.');
  return {
    rule: `(${before}) == (${after}) && (!(${after}) || self.${field} == oldSelf.${field})`,
    message: `${field} cannot be changed, added or removed ${FIXED}`,
  };
}

/** The rule that an optional field, given from the spec down, is never changed or removed once it has a value. */
export function fixedOnceSet(...path: string[]): Rule {
  const [before, after] = [present('oldSelf', path), present('self', path)];
  const field = path.join('.');
  return {
    rule: `!(${before}) || ((${after}) && self.${field} == oldSelf.${field})`,
    message: `${field} cannot be changed or removed ${FIXED}`,
  };
}

/** A column of `kubectl get`. Priority 1 shows with `-o wide` only. */
export interface PrinterColumn {
  name: string;
  type: 'string' | 'integer' | 'date' | 'boolean';
  jsonPath: string;
  description: string;
  priority?: number;
}

/** Everything that the CRD of a kind is generated from. */
export interface KindDefinition {
  kind: string;
  /** The one served and stored version. Absent: the group's. */
  version?: string;
  plural: string;
  singular: string;
  shortNames: string[];
  scope: 'Namespaced' | 'Cluster';
  categories: string[];
  /** First paragraph of `kubectl explain` and of the reference page. */
  description: string;
  /** Absent where Gardener's kind has none. */
  spec?: z.ZodType;
  /** Fields beside metadata, of a kind without a spec. */
  fields?: z.ZodType;
  status: z.ZodType;
  /** Longest `metadata.name`; such names are also held to an RFC 1123 label. Absent: Kubernetes' own 253. */
  maxNameLength?: number;
  printerColumns: PrinterColumn[];
  scale?: { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath: string };
  /** CEL rules over the whole object, where spec must be compared with status. */
  rules?: Rule[];
}
