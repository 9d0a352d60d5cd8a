import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { connect as connectTLS } from 'node:tls';
import { Agent, buildConnector } from 'undici';
import { passFence } from '../kube/http/fence.ts';

/** A member in etcd's member list. */
export interface EtcdMember {
  /** Decimal text, because it exceeds a number's precision. */
  id: string;
  /** Empty until the member has started for the first time. */
  name: string;
  learner: boolean;
  /** It answers and reports no error. */
  healthy: boolean;
  /** It leads the cluster. */
  leader: boolean;
  /** A learner with nearly all of the leader's data. */
  caughtUp: boolean;
  peerURLs: string[];
  /** Expiry of the serving certificate. Absent: none was presented to this client, or no custom dialer is used. */
  certificateEnds?: Date;
}

/** Client certificate for the shoot's etcd, and its members' CA; all PEM. */
interface EtcdCredentials {
  ca: string;
  cert: string;
  key: string;
}

/** Opens a byte stream to a member, in place of a plain connection. */
type Dial = (host: string, port: number) => Promise<Duplex>;

/** How members are reached. */
interface EtcdWay {
  dial?: Dial | undefined;
  /**
   * Port of the members' JSON gateway, apart from the port for API servers; members started before it existed are asked
   * at their URL.
   */
  gatewayPort?: number | undefined;
}

/** An etcd request was refused, or no member answered (status 0). */
export class EtcdError extends Error {
  override readonly name = 'EtcdError';
  readonly status: number;

  constructor(message: string, status: number, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

interface ListedMember {
  ID: string;
  name?: string;
  peerURLs?: string[];
  clientURLs?: string[];
  isLearner?: boolean;
}

interface MemberStatus {
  header: { member_id: string; revision?: string };
  leader?: string;
  raftIndex?: string;
  raftAppliedIndex?: string;
  isLearner?: boolean;
  dbSize?: string;
  version?: string;
  errors?: string[];
}

const TIMEOUT_MS = 3000;
/** A connection through an API server needs one more handshake. */
const DIAL_MS = 10_000;
/** A member that sends nothing for this long during a snapshot counts as failed. */
const SNAPSHOT_IDLE_MS = 60_000;
// etcd itself refuses to promote a learner that lags further.
const CAUGHT_UP_SHARE = 0.9;

/**
 * Membership calls and snapshots of a shoot's etcd, over its JSON gateway. `endpoints` are client URLs; any of them may
 * be down.
 */
export class EtcdClient {
  readonly #endpoints: string[];
  readonly #agent: Agent;
  /** Expiry of presented certificates, by host. */
  readonly #shown = new Map<string, Date>();

  constructor(endpoints: string[], credentials: EtcdCredentials, { dial, gatewayPort }: EtcdWay = {}) {
    this.#endpoints = endpoints;
    const { ca, cert, key } = credentials;
    const open = dial
      ? through(dial, { ca, cert, key }, this.#shown)
      : buildConnector({ ca, cert, key, timeout: TIMEOUT_MS, allowH2: false });
    const connect = gatewayPort ? gatewayFirst(open, gatewayPort) : open;
    // Its few calls time out after seconds; over HTTP/2 undici aborts in a way that can make Node loop
    // (providers/cloud-http.ts).
    this.#agent = new Agent({ connect, connections: 1, allowH2: false });
  }

  /** All members with their health; undefined when none answers or the majority is lost. */
  async observe(): Promise<EtcdMember[] | undefined> {
    let listed: ListedMember[];
    try {
      listed = await this.memberList();
    } catch (error) {
      if (error instanceof EtcdError) return undefined;
      throw error;
    }
    const statuses = await Promise.all(listed.map((member) => this.#statusOf(member)));
    const leaderID = statuses.find((status) => status?.leader && status.leader !== '0')?.leader;
    const leaderIndex = Number(statuses[listed.findIndex((member) => member.ID === leaderID)]?.raftIndex ?? Number.NaN);
    return listed.map((member, index) => {
      const status = statuses[index];
      const certificateEnds = this.#shown.get(URL.parse(this.#urlOf(member) ?? '')?.hostname ?? '');
      return {
        id: member.ID,
        name: member.name ?? '',
        learner: member.isLearner ?? false,
        healthy: status !== undefined && (status.errors ?? []).length === 0,
        leader: member.ID === leaderID,
        caughtUp: Number(status?.raftAppliedIndex ?? Number.NaN) >= leaderIndex * CAUGHT_UP_SHARE,
        peerURLs: member.peerURLs ?? [],
        ...(certificateEnds && { certificateEnds }),
      };
    });
  }

  /** All members by a linearizable read. Throws EtcdError. */
  async memberList(): Promise<ListedMember[]> {
    const answer = await this.#call<{ members?: ListedMember[] }>('/v3/cluster/member/list', { linearizable: true });
    return answer.members ?? [];
  }

  /** Adds a learner. Throws EtcdError. */
  async addLearner(peerURL: string): Promise<void> {
    await this.#call('/v3/cluster/member/add', { peerURLs: [peerURL], isLearner: true });
  }

  /** Promotes a learner to a voter. Throws EtcdError, also when the learner has not caught up. */
  async promote(id: string): Promise<void> {
    await this.#call('/v3/cluster/member/promote', { ID: id });
  }

  /** Removes a member. A missing member is no error. Throws EtcdError. */
  async remove(id: string): Promise<void> {
    try {
      await this.#call('/v3/cluster/member/remove', { ID: id });
    } catch (error) {
      if (error instanceof EtcdError && error.status === 404) return;
      throw error;
    }
  }

  /** Transfers leadership; only the leader accepts the call, so it is sent to the leader's URL. Throws EtcdError. */
  async transferLeadership(from: string, to: string): Promise<void> {
    const leader = (await this.memberList()).find((member) => member.ID === from);
    const url = leader && this.#urlOf(leader);
    if (!url) throw new EtcdError(`etcd member ${from} is not known, or has not told its address`, 0);
    await this.#post(url, '/v3/maintenance/transfer-leadership', { targetID: to });
  }

  /**
   * Streams the whole database of the first member that answers, followed by its SHA-256; the snapshot is at `revision`
   * or later. Throws EtcdError, also while it is read.
   */
  async snapshot(signal: AbortSignal): Promise<{ revision: number; chunks: AsyncIterable<Buffer> }> {
    let failure: EtcdError | undefined;
    for (const endpoint of this.#endpoints) {
      try {
        const status = await this.#post<MemberStatus>(endpoint, '/v3/maintenance/status', {});
        // A learner, or a member without a leader, may lack writes that others acknowledged.
        if (status.isLearner || !status.leader || status.leader === '0') continue;
        return { revision: Number(status.header.revision ?? 0), chunks: this.#snapshotOf(endpoint, signal) };
      } catch (error) {
        if (!(error instanceof EtcdError)) throw error;
        failure = error;
      }
    }
    throw failure ?? new EtcdError('no etcd member can give a snapshot: none has a leader', 0);
  }

  /** The gateway sends each chunk as a line of JSON. */
  async *#snapshotOf(endpoint: string, signal: AbortSignal): AsyncGenerator<Buffer> {
    const path = '/v3/maintenance/snapshot';
    try {
      const response = await this.#agent.request({
        origin: endpoint,
        path,
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
        headersTimeout: SNAPSHOT_IDLE_MS,
        bodyTimeout: SNAPSHOT_IDLE_MS,
        signal,
      });
      for await (const line of linesOf(response.body)) {
        const { result, error } = JSON.parse(line) as { result?: { blob?: string }; error?: { message?: string } };
        if (error || response.statusCode !== 200)
          throw new EtcdError(
            `etcd at ${endpoint} refused ${path}: ${error?.message ?? messageOf(line)}`,
            response.statusCode,
          );
        if (result?.blob) yield Buffer.from(result.blob, 'base64');
      }
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof EtcdError) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      throw new EtcdError(`the snapshot of etcd at ${endpoint} broke off: ${reason}`, 0, { cause: error });
    }
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  /**
   * The URL of a member. Its own claim counts only where it is a known endpoint: on a tenant's machines the tenant can
   * set it.
   */
  #urlOf(member: ListedMember): string | undefined {
    return member.clientURLs?.find((url) => this.#endpoints.includes(url));
  }

  async #statusOf(member: ListedMember): Promise<MemberStatus | undefined> {
    const url = this.#urlOf(member);
    if (!url) return undefined;
    try {
      return await this.#post<MemberStatus>(url, '/v3/maintenance/status', {});
    } catch (error) {
      if (error instanceof EtcdError) return undefined;
      throw error;
    }
  }

  /** Calls the endpoints in turn until one answers. */
  async #call<T>(path: string, body: unknown): Promise<T> {
    let failure: EtcdError | undefined;
    for (const endpoint of this.#endpoints) {
      try {
        return await this.#post<T>(endpoint, path, body);
      } catch (error) {
        // A refusal by etcd would be the same from every member; only no answer and "unavailable" are retried.
        if (!(error instanceof EtcdError) || (error.status !== 0 && error.status < 500)) throw error;
        // The refusal of a running member says more than no answer.
        if (!failure || error.status !== 0) failure = error;
      }
    }
    throw failure ?? new EtcdError('there is no etcd endpoint to ask', 0);
  }

  async #post<T>(endpoint: string, path: string, body: unknown): Promise<T> {
    passFence(`POST ${path} to etcd`);
    try {
      const response = await this.#agent.request({
        origin: endpoint,
        path,
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
        headersTimeout: TIMEOUT_MS,
        bodyTimeout: TIMEOUT_MS,
      });
      const text = await response.body.text();
      if (response.statusCode !== 200) {
        throw new EtcdError(`etcd at ${endpoint} refused ${path}: ${messageOf(text)}`, response.statusCode);
      }
      return JSON.parse(text) as T;
    } catch (error) {
      if (error instanceof EtcdError) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      throw new EtcdError(`etcd at ${endpoint} does not answer: ${reason}`, 0, { cause: error });
    }
  }
}

/**
 * Connects to a member's gateway, or to its URL where the gateway's port does not answer: an older Service drops
 * connections to other ports.
 */
const gatewayFirst =
  (open: buildConnector.connector, gatewayPort: number): buildConnector.connector =>
  (options, callback) =>
    open({ ...options, port: String(gatewayPort) }, (...[error, socket]) => {
      if (error) open(options, callback);
      else callback(null, socket);
    });

/** TLS over a stream of `dial`. @param shown records the certificate's expiry for each host */
function through(dial: Dial, credentials: EtcdCredentials, shown: Map<string, Date>): buildConnector.connector {
  const open = async (host: string, port: number) => {
    const dialled = dial(host, port);
    const late = AbortSignal.timeout(DIAL_MS);
    const stream = await Promise.race([dialled, once(late, 'abort').then(() => undefined)]);
    if (!stream) {
      dialled.then(
        (unwanted) => unwanted.on('error', () => {}).destroy(),
        () => {},
      );
      throw new Error(`no way to ${host}:${port} within ${DIAL_MS / 1000} s`);
    }
    const socket = connectTLS({ ...credentials, socket: stream, host });
    // Both may fail again after they were abandoned; an unhandled error event would end the process.
    for (const one of [stream, socket]) one.on('error', () => {});
    try {
      await once(socket, 'secureConnect', { signal: AbortSignal.timeout(TIMEOUT_MS) });
      shown.set(host, new Date(socket.getPeerCertificate().valid_to));
      return socket;
    } catch (error) {
      socket.destroy();
      stream.destroy();
      throw error;
    }
  };
  return ({ hostname, port }, callback) => {
    open(hostname, Number(port)).then(
      (socket) => callback(null, socket),
      (error) => callback(error, null),
    );
  };
}

/** Lines of a stream, at most one of them in memory. */
async function* linesOf(stream: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let parts: Buffer[] = [];
  for await (let chunk of stream) {
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a)) {
      parts.push(chunk.subarray(0, end));
      yield Buffer.concat(parts).toString();
      parts = [];
      chunk = chunk.subarray(end + 1);
    }
    if (chunk.length > 0) parts.push(chunk);
  }
  if (parts.length > 0) yield Buffer.concat(parts).toString();
}

function messageOf(text: string): string {
  try {
    const parsed = JSON.parse(text) as { message?: string; error?: string };
    return parsed.message ?? parsed.error ?? text;
  } catch {
    return text;
  }
}
