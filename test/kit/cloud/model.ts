/** Names of Pulumi's provider plugins for the three clouds. */
export const CLOUDS = ['aws', 'gcp', 'azure-native'] as const;
export type CloudName = (typeof CLOUDS)[number];

export type Properties = Record<string, any>;
export type Operation = 'create' | 'read' | 'update' | 'delete' | 'invoke';

/** A resource as the cloud keeps it, one JSON file each. What it answers is made of this alone, so it survives every process. */
export interface CloudResource {
  /** Random: tells a resource from a later one of the same name. */
  uid: string;
  cloud: CloudName;
  account: string;
  /** `global` for what an account has once. */
  region: string;
  /** As Pulumi prints it, without file and API version: `aws:eks:Cluster`. */
  type: string;
  /** The cloud's id, which Pulumi's import takes. */
  id: string;
  /** Physical name; the id where the type has no names. */
  name: string;
  /** What was asked for last. */
  inputs: Properties;
  /** Tags that the provider's configuration puts on everything. */
  defaultTags: Record<string, string>;
  /** What the cloud made up when the resource was made and answers ever after. */
  facts: Properties;
  /** Unix milliseconds. */
  createdAt: number;
  /** From then on it is what it should be; until then it is being made or changed. */
  readyAt: number;
  /** From then on it is gone; present from the request on. */
  goneAt?: number;
  /** Counts changes. */
  generation: number;
  /** Why it is not what was asked for, as the cloud says it. */
  failure?: string;
  /** Deleted, of a kind that the cloud never deletes: it costs nothing, and keeps its name. */
  retired?: boolean;
}

/** Who calls, as far as the cloud could tell from the credentials. */
export interface Caller {
  /** Account number, project or subscription. */
  account: string;
  /** How the cloud's errors name the caller. */
  principal: string;
  /** Where things are made that do not say where. */
  region: string;
  defaultTags: Record<string, string>;
}

/** What an operation finds in the cloud: the caller's resources that can be read now. */
export interface Testbed {
  caller: Caller;
  region: string;
  /** Unix milliseconds. */
  now: number;
  all(type?: string): CloudResource[];
  /** By id, name, ARN or self link; of the region, or global. */
  find(type: string, handle: unknown): CloudResource | undefined;
  /** All that the cloud says about it. */
  outputs(resource: CloudResource): Properties;
  /** Where the cluster's API server can be reached for real, when a test provides one. */
  endpoint(resource: CloudResource): Endpoint | undefined;
}

/** A real API server that stands behind a fake managed cluster. PEM where nothing else is said. */
export interface Endpoint {
  /** https://host[:port] */
  endpoint: string;
  certificateAuthority: string;
  /** An administrator, for clouds that hand one out: certificate and key, or a token. */
  clientCertificate?: string;
  clientKey?: string;
  token?: string;
}

/** Another resource that one needs. */
export interface Reference {
  type: string;
  handle: unknown;
  /** What deleting the other one meets: a refusal, its end too, or nothing. Default: a refusal. */
  onDelete?: 'refuse' | 'cascade' | 'ignore';
  /** Whether it must be there to begin with. Default: yes. */
  required?: boolean;
}

/** Machines that a resource asks the cloud for. */
export interface Machines {
  count: number;
  spot: boolean;
  /** Any of these will do. */
  types: string[];
  /** Any of these will do. */
  zones: string[];
}

/** A refusal for a reason that only this type knows. */
export interface Refusal {
  /** In AWS's and Azure's sense, for example InvalidParameterException. */
  code: string;
  message: string;
}

/** A resource before the cloud gave it an id. The name is empty where the type has none. */
export type Draft = Omit<CloudResource, 'id' | 'facts'>;

export interface ResourceType {
  /** As in CloudResource. */
  type: string;
  /** Input with the physical name; made of the logical name where it is left out. */
  nameInput?: string;
  /** Exists once per account. */
  global?: boolean;
  /** Inputs (or paths in them) that cannot change: another resource takes the place. */
  immutable: readonly string[];
  /** Has an API server: see Endpoint. */
  cluster?: boolean;
  /** The cloud never deletes it. */
  permanent?: boolean;
  /** A second create with equal inputs gives the first one's resource, as the cloud's API does. */
  idempotent?: boolean;
  /** Outputs that Pulumi must keep secret. */
  secrets?: readonly string[];
  /** What only one resource of type and account may have (and region, where ids are regional). Absent: names need not be unique. */
  uniqueBy?(inputs: Properties, region: string): string | undefined;
  /** Where it is, when not where the caller's configuration says. */
  region?(inputs: Properties): string | undefined;
  id(resource: Draft): string;
  /** Other ids that import takes. */
  aliases?(resource: CloudResource): string[];
  /** What the cloud makes up once. */
  facts?(resource: Draft): Properties | Promise<Properties>;
  /** What it answers besides the inputs. */
  outputs(resource: CloudResource, testbed: Testbed): Properties;
  references?(inputs: Properties): Reference[];
  machines?(inputs: Properties, testbed: Testbed): Machines | undefined;
  /** `before` is absent on create, `after` on delete. */
  refuse?(change: { before?: CloudResource; after?: Properties }, testbed: Testbed): Refusal | undefined;
}

/** What was tried, for the text of an error. */
export interface Attempt {
  operation: Operation;
  /** CloudResource.type, or the token of an invoke. */
  type: string;
  /** Physical name, or the id where it is known. */
  name: string;
  region: string;
  caller?: Caller;
}

/** What goes wrong in every cloud, in the words of each; texts are what Pulumi's provider prints, without what the engine adds. */
export interface CloudErrors {
  /** The cloud's name of the permission that the attempt needs. */
  action(attempt: Attempt): string;
  exists(attempt: Attempt, id: string): string;
  /** Something that it refers to is not there. */
  missing(attempt: Attempt, reference: Reference): string;
  /** It is not there itself. */
  gone(attempt: Attempt): string;
  inUse(attempt: Attempt, id: string, by: CloudResource): string;
  refused(attempt: Attempt, refusal: Refusal): string;
  throttled(attempt: Attempt): string;
  quota(attempt: Attempt, limit: number): string;
  depleted(attempt: Attempt, machines: Machines): string;
  unauthenticated(attempt: Attempt): string;
  denied(attempt: Attempt): string;
  closed(attempt: Attempt): string;
  /** Something inside the cloud broke. */
  internal(attempt: Attempt): string;
}

/** What a provider was configured with: configuration first, then environment. */
export interface Settings {
  region: string;
  defaultTags: Record<string, string>;
  /** What proves who calls; empty where nothing was given. */
  proof: Record<string, string>;
  /** Accounts that may be used; empty: all. */
  allowedAccounts: string[];
}

/** Credentials that the cloud knows. */
export interface Account {
  cloud: CloudName;
  id: string;
  principal: string;
  /** Names one set of credentials: access key id, private key id, client id. */
  key: string;
  /** What Settings.proof must show, besides the key. */
  secret: string;
  /** As users of the cloud get it: keys of a Secret. */
  credentials: Record<string, string>;
}

/** One of the three clouds. */
export interface CloudModel {
  name: CloudName;
  types: ReadonlyMap<string, ResourceType>;
  /** A type that is not in `types`: echoes what it is given. */
  unknownType(type: string): ResourceType;
  errors: CloudErrors;
  settings(configuration: Properties, environment: NodeJS.ProcessEnv): Settings;
  /** The account whose credentials these are. */
  accountOf(settings: Settings, accounts: readonly Account[]): Account | undefined;
  newAccount(number: number): Account;
  /** Says what is wrong with the configuration before anything is done; undefined: nothing. */
  checkConfiguration(settings: Settings, account: Account | undefined): string | undefined;
  /** A physical name where the program gives none; `digits` are hexadecimal and random. */
  autoname(logicalName: string, digits: string): string;
  /** What it answers on any resource: tags, ids. */
  commonOutputs(resource: CloudResource, testbed: Testbed): Properties;
  /** Whether ids are unique in a region only. */
  regionalIds: boolean;
  /** Whether reading what there was no state of keeps inputs that the cloud says nothing of; see Read in azure-native's provider.go. */
  keepsInputsWhenRead?: boolean;
  /** Whether `id` means the resource, in any of the forms that import takes. */
  isCalled(resource: CloudResource, id: string): boolean;
  /** All tags (labels) that the resource bears. */
  tags(resource: CloudResource): Record<string, string>;
  lookups: Readonly<Record<string, (args: Properties, testbed: Testbed) => Properties | undefined>>;
}

/** Whether it was ever what it should be: what is still being made answers little. */
export const isMade = (resource: CloudResource, testbed: Testbed): boolean =>
  resource.generation > 1 || testbed.now >= resource.readyAt;

/** `aws:eks/cluster:Cluster` and `azure-native:containerservice/v20250901:ManagedCluster` without what is between / and :. */
export const shortType = (token: string): string => token.replace(/\/[^:]*(?=:[^:]*$)/, '');
