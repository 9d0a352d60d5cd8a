/** A machine of a group, with what it is told of itself. */
export interface LaunchedInstance {
  /** Never given again. */
  id: string;
  /** What its cloud and its cluster call it: at AWS the id; at Google a name that the machine made in its place has too. */
  name: string;
  address: string;
  zone: string;
  region: string;
  /** Number of the account, or project. */
  account: string;
  machineType: string;
  image: string;
  /** What its template has for it: at AWS `user-data` in base64, at Google the metadata of the instance. */
  attributes: Record<string, string>;
}
