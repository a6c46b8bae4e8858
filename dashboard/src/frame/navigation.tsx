/** The way between pages: a column at the side; on a phone, a drawer. */

import { useEffect, useState } from "preact/hooks";
import { keepKey, key, signInWanted } from "../api/key";
import { me, scopesOf, whyNot } from "../api/me";
import { PAGES, type Page } from "../pages";
import { arrivals } from "../router";
import { choose, type Theme, theme } from "./theme";

const GROUPS = ["Watch", "Remember", "Understand", "Operate"] as const;
const THEMES: readonly (readonly [Theme, string])[] = [
  ["system", "System"],
  ["light", "Light"],
  ["dark", "Dark"],
];

/** The navigation. */
export function Navigation({ current }: { current: Page | undefined }) {
  const [open, setOpen] = useState(false);
  const step = arrivals.value;
  useEffect(() => setOpen(false), [step]);
  return (
    <header class={open ? "side open" : "side"}>
      <div class="brand">
        <a href="/" class="logo">
          <Mark />
          <span>Mneme</span>
        </a>
        <button
          type="button"
          class="quiet icon menu"
          aria-expanded={open}
          aria-controls="navigation"
          aria-label={open ? "Close the menu" : "Open the menu"}
          onClick={() => setOpen(!open)}
        >
          <Icon path={open ? "M6 6l12 12M18 6L6 18" : "M4 7h16M4 12h16M4 17h16"} />
        </button>
      </div>
      <div class="side-body" id="navigation">
        <nav aria-label="Pages">
          {GROUPS.map((group) => (
            <Group
              key={group}
              name={group}
              pages={PAGES.filter(
                (page) => page.group === group && !(page.needs && whyNot(page.needs)),
              )}
              current={current}
            />
          ))}
        </nav>
        <div class="side-foot">
          <Whose />
          <fieldset class="themes">
            <legend class="hidden">Theme</legend>
            {THEMES.map(([value, text]) => (
              <label key={value}>
                <input
                  type="radio"
                  name="theme"
                  class="hidden"
                  checked={theme.value === value}
                  onChange={() => choose(value)}
                />
                <span>{text}</span>
              </label>
            ))}
          </fieldset>
          {key.value ? (
            <button type="button" class="quiet" onClick={signOut}>
              Sign out
            </button>
          ) : (
            <button type="button" class="quiet" onClick={() => (signInWanted.value = true)}>
              Sign in with a key
            </button>
          )}
        </div>
      </div>
    </header>
  );
}

/** Where one is, with which key, and what it may do. */
function Whose() {
  const known = me.value;
  if (!known) return null;
  return (
    <dl class="whose" aria-label="Signed in as">
      <dt>Tenant</dt>
      <dd>{known.tenantId}</dd>
      <dt>Key</dt>
      <dd>{known.apiKeyId ? known.apiKeyName || known.apiKeyId : "none"}</dd>
      <dt>May</dt>
      <dd>{scopesOf(known).join(", ")}</dd>
    </dl>
  );
}

/** Load a page's code before it is asked for; when that fails, the page itself says so. */
function prepare(page: Page): void {
  page.load().catch(() => undefined);
}

function signOut(): void {
  keepKey("");
  // What was loaded under the key is gone with the page. Browsers keep pages as they are for the way
  // back: this one begins anew there.
  addEventListener("pageshow", () => location.reload());
  location.assign("/");
}

function Group(props: { name: string; pages: readonly Page[]; current: Page | undefined }) {
  if (props.pages.length === 0) return null;
  return (
    <div class="nav-group">
      <h2>{props.name}</h2>
      <ul>
        {props.pages.map((page) => (
          <li key={page.name}>
            <a
              href={`/${page.name}`}
              aria-current={page === props.current ? "page" : undefined}
              onPointerEnter={() => prepare(page)}
              onFocus={() => prepare(page)}
            >
              <Icon path={page.icon} />
              {page.title}
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Icon({ path }: { path: string }) {
  return (
    <svg viewBox="0 0 24 24" class="glyph" aria-hidden="true">
      <path d={path} />
    </svg>
  );
}

/** The sign of Mneme. */
export function Mark() {
  return (
    <svg viewBox="0 0 32 32" class="mark" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M7 23V11.5l6 7 3-3.6 3 3.6 6-7V23" />
      <circle cx="16" cy="9" r="2" />
    </svg>
  );
}
