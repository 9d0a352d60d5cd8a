import { z } from 'zod';
import { CRON } from './cron.ts';

/** A CEL validation rule of a CRD. */
export interface Rule {
  rule: string;
  message?: string;
  messageExpression?: string;
  reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate';
  fieldPath?: string;
}

/** Adds the description that `kubectl explain` shows. */
export const describe = <T extends z.ZodType>(schema: T, description: string): T =>
  schema.meta({ ...schema.meta(), description });

/** Adds CEL rules to those of the schema. */
export function rules<T extends z.ZodType>(schema: T, ...added: Rule[]): T {
  const meta = schema.meta() ?? {};
  const before = (meta['x-kubernetes-validations'] as Rule[] | undefined) ?? [];
  return schema.meta({ ...meta, 'x-kubernetes-validations': [...before, ...added] });
}

/** Marks a schema whose CEL rules, nested ones too, are left out of the CRD. */
export const WITHOUT_RULES = 'x-coppice-without-rules';

/**
 * The schema without CEL rules, for templates: the rules of many templates exceed the API server's cost limit, and
 * rules about changes do not apply. Before use the result is validated by a dry run.
 */
export const withoutRules = <T extends z.ZodType>(schema: T): T =>
  schema.meta({ ...schema.meta(), [WITHOUT_RULES]: true });

/** Text of at most `max` characters. Without bounds the API server refuses CEL rules as too costly. */
export const text = (max: number, description: string, pattern?: RegExp) =>
  (pattern ? z.string().max(max).regex(pattern) : z.string().max(max)).describe(description);

/** Non-empty text. */
export const name = (max: number, description: string, pattern?: RegExp) =>
  (pattern ? z.string().min(1).max(max).regex(pattern) : z.string().min(1).max(max)).describe(description);

/** A whole number; without `max` 64 bits. */
export const count = (min: number, max: number | undefined, description: string) =>
  (max === undefined ? z.int().min(min) : z.int().min(min).max(max)).describe(description);

/** A list of at most `max` items. */
export const list = <T extends z.ZodType>(item: T, max: number, description: string) =>
  z.array(item).max(max).describe(description);

/** A list that server-side apply merges by `key`, with unique keys. */
export const keyed = <T extends z.ZodType>(item: T, max: number, key: string, description: string) =>
  list(item, max, description).meta({
    description,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': [key],
  });

/** Kubernetes labels. */
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

/** A map of texts, such as annotations. */
export const map = (max: number, description: string) =>
  z.record(z.string(), z.string().max(4096)).meta({ description, maxProperties: max });

/** An object of unknown fields, kept as written. */
export const free = (description: string) =>
  z.record(z.string(), z.unknown()).meta({ description, 'x-kubernetes-preserve-unknown-fields': true });

/** A number or text. */
export const intOrString = (description: string) =>
  z.union([z.int(), z.string().max(64)]).meta({ description, 'x-kubernetes-int-or-string': true });

/** A number, or text that matches the pattern. */
const notNegative = (pattern: RegExp, description: string) =>
  intOrString(description).meta({
    description,
    'x-kubernetes-int-or-string': true,
    pattern: pattern.source,
    minimum: 0,
  });

/** A non-negative Kubernetes quantity ("500m", 2). */
export const quantity = (description: string) => notNegative(PATTERNS.quantity, description);

/** A count or a percentage ("25%", 1). */
export const countOrPercent = (description: string, pattern = /^[0-9]+%?$/) => notNegative(pattern, description);

/** Range of pod priorities, including Kubernetes' own. */
export const POD_PRIORITY = { least: -(2 ** 31), most: 2 ** 31 - 1 } as const;

/** An address range. No `format`, because an API server would then accept a list in place of a text. */
export const cidr = (description: string) =>
  rules(name(64, description, PATTERNS.cidr), {
    rule: 'isCIDR(self)',
    message: 'must be an address range, for example 10.0.0.0/16',
  });

/** An IPv4 address range. */
export const cidrV4 = (description: string) =>
  rules(name(18, description, PATTERNS.cidr), {
    rule: 'isCIDR(self) && cidr(self).ip().family() == 4',
    message: 'must be a range of IPv4 addresses, for example 10.0.0.0/8',
  });

/** CEL: whether a value matches a pattern. */
export const matches = (value: string, pattern: RegExp): string =>
  `${value}.matches('${pattern.source.replaceAll('\\', '\\\\')}')`;

/** Marks text whose form a rule explains in words: an API server would answer with the regular expression. */
export const FORM_IN_WORDS = 'x-coppice-form-in-words';

/** Text whose form errors explain in words. Further rules apply only to text of that form. */
const worded = (max: number, pattern: RegExp, description: string, message: string, ...further: Rule[]) =>
  rules(
    name(max, description, pattern).meta({ description, [FORM_IN_WORDS]: true }),
    { rule: matches('self', pattern), message },
    ...further.map((one) => ({ ...one, rule: `!${matches('self', pattern)} || (${one.rule})` })),
  );

const DURATION_FORM =
  'must be a duration longer than 0 and shorter than 292 years: hours, minutes and seconds, for example 48h or 1h30m';

/** A positive Go duration of at most 292 years (int64 nanoseconds). */
export const duration = (description: string) =>
  worded(LIMITS.duration, PATTERNS.duration, description, DURATION_FORM, {
    rule: "duration(self) > duration('0s')",
    message: DURATION_FORM,
  });

/** A Kubernetes version, with or without patch. */
export const kubernetesVersion = (description: string, ...further: Rule[]) =>
  worded(
    LIMITS.version,
    PATTERNS.version,
    description,
    'must be a version without v, for example 1.36.3, or 1.36 for its newest patch',
    ...further,
  );

/** A time zone; the API server validates it with its built-in list, as for CronJobs. */
export const timeZone = (description: string) =>
  rules(text(64, description, PATTERNS.timeZone), {
    rule: "timestamp('2026-01-01T00:00:00Z').getFullYear(self) > 0",
    message: 'must be a time zone, for example Europe/Berlin',
  });

const NO_CRON =
  'must be a cron expression: minute, hour, day of month, month and day of week, for example 0 20 * * MON-FRI';

/** A cron expression. No `pattern`: the API server would answer with the whole unreadable pattern. */
export const cronExpression = (description: string) =>
  rules(
    z
      .string()
      .max(128)
      .refine((value) => CRON.test(value), NO_CRON)
      .describe(description),
    { rule: `self.matches(r'(?i)${CRON.source}')`, message: NO_CRON },
  );

/** A region or a zone; clouds differ: eu-central-1a, westeurope, RegionOne, 1. */
export const place = (description: string) => name(LIMITS.label, description, PATTERNS.place);

/** A machine type: m5.large, n2-standard-4, Standard_D4s_v5. */
export const machineTypeName = (description: string) => name(63, description, PATTERNS.machineType);

/** Name of another object. */
export const objectName = (description: string) => name(LIMITS.name, description, PATTERNS.objectName);

/** Name of a namespace, or of an object whose name is a label. */
export const labelName = (description: string) => name(LIMITS.label, description, PATTERNS.label);

/** Patterns must be understood by Go's RE2 as well: no look-ahead, no back references. */
export const PATTERNS = {
  label: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
  /** Kubernetes version; the patch is optional. */
  version: /^[0-9]+\.[0-9]+(\.[0-9]+)?$/,
  /** Go duration, for example 1h30m. */
  duration: /^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$/,
  /** Text that is safe in a host name. */
  place: /^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$/,
  machineType: /^[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$/,
  /** RFC 1123 subdomain. */
  objectName: /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/,
  /** Key of a label or taint: an optional domain and a name. */
  labelKey: /^([a-z0-9]([-.a-z0-9]*[a-z0-9])?\/)?[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$/,
  labelValue: /^([A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?)?$/,
  cidr: /^[0-9a-fA-F.:]+\/[0-9]{1,3}$/,
  /** A non-negative quantity. */
  quantity: /^[+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,3})?$/,
  /** RFC 3339. */
  time: /^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$/,
  /** IANA name, or an offset. */
  timeZone: /^([A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+){0,2}|[+-][0-9]{2}:[0-9]{2})$/,
  /** HHMMSS+ZZZZ. */
  timeOfDay: /^([01][0-9]|2[0-3])[0-5][0-9][0-5][0-9][+-](0[0-9]|1[0-4])[0-5][0-9]$/,
} as const;

/** Longest texts, in characters. */
export const LIMITS = { label: 63, name: 253, version: 32, duration: 32 } as const;

const FIXED = 'after creation: make a new cluster instead';

/** CEL: whether the (nested) field exists; false when a parent is missing. */
const present = (object: string, path: readonly string[]): string =>
  path.map((_, depth) => `has(${[object, ...path.slice(0, depth + 1)].join('.')})`).join(' && ');

/** Rule that an optional field, by its path from spec, is never added, changed or removed. */
export function fixedAtCreation(...path: string[]): Rule {
  const [before, after] = [present('oldSelf', path), present('self', path)];
  const field = path.join('.');
  return {
    rule: `(${before}) == (${after}) && (!(${after}) || self.${field} == oldSelf.${field})`,
    message: `${field} cannot be changed, added or removed ${FIXED}`,
  };
}

/** Rule that an optional field, by its path from spec, is never changed or removed once set. */
export function fixedOnceSet(...path: string[]): Rule {
  const [before, after] = [present('oldSelf', path), present('self', path)];
  const field = path.join('.');
  return {
    rule: `!(${before}) || ((${after}) && self.${field} == oldSelf.${field})`,
    message: `${field} cannot be changed or removed ${FIXED}`,
  };
}

/** A column of `kubectl get`. Priority 1 appears with `-o wide` only. */
interface PrinterColumn {
  name: string;
  type: 'string' | 'integer' | 'date' | 'boolean';
  jsonPath: string;
  description: string;
  priority?: number;
}

/** Everything from which the CRD of a kind is generated. */
export interface KindDefinition {
  kind: string;
  /** The served and stored version. Absent: VERSION. */
  version?: string;
  plural: string;
  singular: string;
  shortNames: string[];
  scope: 'Namespaced' | 'Cluster';
  categories: string[];
  /** First paragraph of `kubectl explain` and of the reference page. */
  description: string;
  /** Absent when Gardener's kind has none. */
  spec?: z.ZodType;
  /** Top-level fields of a kind without spec. */
  fields?: z.ZodType;
  status: z.ZodType;
  /** Longest `metadata.name`, which must then be an RFC 1123 label. Absent: Kubernetes' 253. */
  maxNameLength?: number;
  printerColumns: PrinterColumn[];
  scale?: { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath: string };
  /** CEL rules that compare spec with status. */
  rules?: Rule[];
}
