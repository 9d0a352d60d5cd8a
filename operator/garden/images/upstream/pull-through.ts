import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type Log, silent } from '../../../kube/log.ts';
import type { Content, Upstream, UpstreamRequest } from '../content.ts';
import { MANIFEST_TYPES, manifestType } from '../manifest-type.ts';
import { PullCache } from './cache.ts';
import { machineLogin } from './credentials.ts';
import { type BlobSource, Download, type DownloadOptions } from './download.ts';
import { PullError } from './errors.ts';
import { type Access, discard, Registries, type RegistryRequest, readBounded } from './registry.ts';
import type { RegistrySettings } from './settings.ts';

interface PullThroughOptions {
  /** Folder of the cache. */
  folder: string;
  /** Present settings. */
  settings: () => Promise<RegistrySettings>;
  /** Ranges of the garden, to which no connection is made. */
  own: readonly string[];
  /** Digests in hex of nodes' blobs. */
  inUse: () => Promise<ReadonlySet<string>>;
  /** A further user with access to the garden; undefined: none. */
  others: () => Promise<string | undefined>;
  log?: Log;
  /** Milliseconds for which a resolved tag is reused. Default 10 s. */
  freshMs?: number;
  limits?: DownloadOptions['limits'];
  env?: NodeJS.ProcessEnv;
}

interface StoredManifest {
  /** For people who inspect the cache. */
  mediaType: string;
  /** Base64. */
  body: string;
}

interface StoredTag {
  /** For people who inspect the cache. */
  reference: string;
  digest: string;
}

interface Manifest {
  digest: string;
  mediaType: string;
  body: Buffer;
}

/** Credentials of a pull, and scopes of its results. */
interface Terms {
  access: Access;
  /** Scopes from which cached content may be used. */
  scopes: string[];
  /** Absent: the result is not cached. */
  keepIn?: string;
  /** Why this machine's permitted login is not used. */
  notice?: string;
}

const PUBLIC = 'public';
const ANSWER_MS = 10_000;
const MANIFEST_BYTES = 4 * 1024 ** 2;
const ACCEPT = MANIFEST_TYPES.join(', ');
const DIGEST = /^sha256:[0-9a-f]{64}$/;

const sha256 = (data: Buffer | string) => createHash('sha256').update(data).digest('hex');
const hexOf = (digest: string) => digest.slice('sha256:'.length);

/** Pulls images of any registry at their first request, and caches them on disk. */
export class PullThrough implements Upstream {
  readonly #options: PullThroughOptions;
  readonly #log: Log;
  readonly #cache: PullCache;
  readonly #registries: Registries;
  #settings: RegistrySettings;
  readonly #manifests = new Map<string, Promise<Manifest>>();
  readonly #downloads = new Map<string, Download>();
  readonly #checked = new Map<string, number>();
  readonly #answers = new Map<string, { answer: Promise<string | undefined>; until: number }>();

  private constructor(options: PullThroughOptions, settings: RegistrySettings) {
    this.#options = options;
    this.#settings = settings;
    this.#log = options.log ?? silent;
    const { folder, inUse } = options;
    this.#cache = new PullCache({ folder, inUse, limit: () => this.#settings.cacheBytes });
    this.#registries = new Registries(options.own, () => this.#settings.trusted);
  }

  static async open(options: PullThroughOptions): Promise<PullThrough> {
    return new PullThrough(options, await options.settings());
  }

  async manifest(request: UpstreamRequest): Promise<Content> {
    const terms = await this.#terms(request);
    const key = JSON.stringify([request.registry, request.repository, request.reference, terms.access.key]);
    let work = this.#manifests.get(key);
    if (!work) {
      work = this.#manifest(request, terms).finally(() => this.#manifests.delete(key));
      this.#manifests.set(key, work);
    }
    const { digest, mediaType, body } = await work.catch((error) => {
      throw explained(error, terms);
    });
    return {
      digest,
      type: mediaType,
      size: body.length,
      async *read(start = 0, end = body.length) {
        yield body.subarray(start, end);
      },
    };
  }

  async blob(request: UpstreamRequest): Promise<Content> {
    const terms = await this.#terms(request);
    const { reference: digest } = request;
    const content = { digest, type: 'application/octet-stream' };
    const found = await this.#cache.find(terms.scopes, hexOf(digest));
    if (found) {
      const { file, size } = found;
      const read = (start = 0, end = size) => createReadStream(file, { start, end: end - 1, highWaterMark: 64 * 1024 });
      return { ...content, size, read };
    }
    const download = await this.#download(request, terms);
    try {
      return { ...content, size: await download.size(), read: (start, end) => download.read(start, end) };
    } catch (error) {
      throw explained(error, terms);
    }
  }

  async close(): Promise<void> {
    await this.#registries.close();
  }

  /** An answer that may be some seconds old: a pull has many requests, and the query may start a program. */
  #lately(what: string, ask: () => Promise<string | undefined>): Promise<string | undefined> {
    const known = this.#answers.get(what);
    if (known && known.until > Date.now()) return known.answer;
    const answer = ask();
    answer.catch(() => this.#answers.delete(what));
    this.#answers.set(what, { answer, until: Date.now() + ANSWER_MS });
    return answer;
  }

  async #download(request: UpstreamRequest, { access, keepIn }: Terms): Promise<Download> {
    const { registry, repository, reference: digest } = request;
    const key = `${digest} ${access.key} ${keepIn}`;
    const under = this.#downloads.get(key);
    if (under) return under;
    const draft = await this.#cache.draft();
    const meanwhile = this.#downloads.get(key);
    if (meanwhile) return meanwhile;
    const download = new Download({
      digest,
      draft,
      name: `a layer of ${registry}/${repository}`,
      open: (offset, signal) => this.#source({ registry, repository, access }, digest, offset, signal),
      keep: async (file, size) => keepIn !== undefined && this.#cache.keep(keepIn, hexOf(digest), file, size),
      ...(this.#options.limits && { limits: this.#options.limits }),
    });
    this.#downloads.set(key, download);
    void download.ended.then(() => this.#downloads.delete(key));
    return download;
  }

  async #source(wanted: RegistryRequest, digest: string, offset: number, signal: AbortSignal): Promise<BlobSource> {
    const headers: Record<string, string> = offset > 0 ? { range: `bytes=${offset}-` } : {};
    const {
      statusCode,
      headers: said,
      body,
    } = await this.#registries.ask(wanted, `blobs/${digest}`, { headers, signal });
    const length = said['content-length'] === undefined ? undefined : Number(said['content-length']);
    const from = /^bytes (\d+)-/.exec(String(said['content-range'] ?? ''))?.[1];
    if (statusCode === 206 && Number(from) !== offset) {
      discard({ body });
      throw new PullError(502, `${wanted.registry} sends another part of ${digest} than requested`);
    }
    return { length, offset: statusCode === 206 ? offset : 0, body };
  }

  async #manifest(request: UpstreamRequest, terms: Terms): Promise<Manifest> {
    const { registry, repository, reference } = request;
    if (DIGEST.test(reference)) {
      return (await this.#stored(terms.scopes, reference)) ?? this.#fetchManifest(request, terms, reference);
    }
    const name = `${registry}/${repository}:${reference}`;
    const file = `tag-${sha256(name)}.json`;
    const tag = await this.#cache.readJson<StoredTag>(terms.scopes, file);
    const known = tag && (await this.#stored(terms.scopes, tag.digest));
    const checkedAt = this.#checked.get(`${name} ${terms.access.key}`) ?? 0;
    if (known && Date.now() - checkedAt < (this.#options.freshMs ?? 10_000)) return known;
    try {
      const manifest = await this.#resolve(request, terms);
      if (this.#checked.size > 10_000) this.#checked.clear();
      this.#checked.set(`${name} ${terms.access.key}`, Date.now());
      if (terms.keepIn !== undefined && manifest.digest !== tag?.digest) {
        await this.#cache.writeJson(terms.keepIn, file, {
          reference: name,
          digest: manifest.digest,
        } satisfies StoredTag);
      }
      return manifest;
    } catch (error) {
      // A machine without network uses cached images.
      if (!known || !(error instanceof PullError) || !error.isOffline) throw error;
      this.#log.warn({ image: name, error: error.message }, 'image is taken from the cache');
      return known;
    }
  }

  /** Resolves a tag. Registries limit downloads of manifests, but not HEAD requests. */
  async #resolve(request: UpstreamRequest, terms: Terms): Promise<Manifest> {
    const wanted = { ...request, access: terms.access };
    const path = `manifests/${request.reference}`;
    const { headers, body } = await this.#registries.ask(wanted, path, { method: 'HEAD', headers: { accept: ACCEPT } });
    discard({ body });
    const digest = String(headers['docker-content-digest'] ?? '');
    if (!DIGEST.test(digest)) return this.#fetchManifest(request, terms, undefined);
    return (await this.#stored(terms.scopes, digest)) ?? this.#fetchManifest(request, terms, digest);
  }

  /** @param digest expected digest; absent: any */
  async #fetchManifest(request: UpstreamRequest, terms: Terms, digest: string | undefined): Promise<Manifest> {
    const { registry, repository, reference } = request;
    const name = `the manifest of ${registry}/${repository}`;
    const path = `manifests/${digest ?? reference}`;
    const wanted = { registry, repository, access: terms.access };
    const answer = await this.#registries.ask(wanted, path, { headers: { accept: ACCEPT } });
    const body = await readBounded(answer.body, MANIFEST_BYTES, name);
    const actual = `sha256:${sha256(body)}`;
    if (digest !== undefined && actual !== digest)
      throw new PullError(502, `${registry} sent other content than ${digest} for ${repository}, which was refused`);
    // The header is not trusted: content is cached by digest alone, which another registry's image may share.
    const mediaType = manifestType(body);
    if (mediaType === undefined)
      throw new PullError(502, `${registry} sent no manifest of an image for ${repository}, which was refused`);
    if (terms.keepIn !== undefined) {
      const stored: StoredManifest = { mediaType, body: body.toString('base64') };
      await this.#cache.writeJson(terms.keepIn, `${hexOf(actual)}.json`, stored);
    }
    return { digest: actual, mediaType, body };
  }

  async #stored(scopes: string[], digest: string): Promise<Manifest | undefined> {
    const stored = await this.#cache.readJson<StoredManifest>(scopes, `${hexOf(digest)}.json`);
    if (!stored) return undefined;
    const body = Buffer.from(stored.body, 'base64');
    // Cached by an earlier version with the registry's own type.
    const mediaType = manifestType(body);
    return sha256(body) === hexOf(digest) && mediaType ? { digest, mediaType, body } : undefined;
  }

  async #terms({ registry, authorization }: UpstreamRequest): Promise<Terms> {
    this.#settings = await this.#options.settings();
    if (authorization !== undefined) {
      // Content pulled with a pod's credentials is not cached.
      const access = { key: `pod ${sha256(authorization)}`, basic: authorization };
      return { access, scopes: [PUBLIC] };
    }
    const anonymous = { access: { key: 'anonymous' }, scopes: [PUBLIC], keepIn: PUBLIC };
    if (!this.#settings.logins.includes(registry)) return anonymous;
    const others = await this.#lately('others', this.#options.others);
    if (others) {
      const notice = `this machine's login at ${registry} is not used, because ${others}; give the pod an imagePullSecret`;
      return { ...anonymous, notice };
    }
    const basic = await this.#lately(registry, () => machineLogin(registry, this.#options.env ?? process.env));
    if (!basic)
      return { ...anonymous, notice: `this machine has no login at ${registry}: "docker login ${registry}" makes one` };
    const scope = `login-${registry.replaceAll(':', '_')}`;
    return { access: { key: `login ${sha256(basic)}`, basic }, scopes: [PUBLIC, scope], keepIn: scope };
  }
}

/** Replaces a refusal for lack of a login by the reason why the permitted login was not used. */
const explained = (error: unknown, { notice }: Terms): unknown =>
  notice && error instanceof PullError && error.status === 401 ? new PullError(401, notice, { cause: error }) : error;
