/** The frame: navigation, the page, and what is told beside it. */

import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useErrorBoundary, useRef, useState } from "preact/hooks";
import { asApiError } from "./api/errors";
import { keepKey, key, offered, signInNeeded, signInWanted } from "./api/key";
import { useLoad } from "./api/load";
import { learnWhoIAm, whyNot } from "./api/me";
import { Empty, ErrorBox, Loading, PageHeader } from "./components/basics";
import { Dialog } from "./components/dialog";
import { LiveRegion } from "./components/live";
import { Navigation } from "./frame/navigation";
import { Shortcuts } from "./frame/shortcuts";
import { SignIn } from "./frame/signin";
import { type Page, type PageProps, pageOf } from "./pages";
import { arrivals, partsOf, path } from "./router";

/** Everything. */
export function App() {
  const [name, ...rest] = partsOf(path.value);
  const page = pageOf(name);
  if (offered.value) return <AnotherKey />;
  if (signInNeeded.value || signInWanted.value) return <SignIn />;
  return <Frame page={page} rest={rest} />;
}

function Frame({ page, rest }: { page: Page | undefined } & PageProps) {
  useLoad(learnWhoIAm, [key.value]);
  return (
    <div class="frame">
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <Navigation current={page} />
      <main id="main" tabIndex={-1}>
        {page ? <Loader key={page.name} page={page} rest={rest} /> : <NotFound />}
      </main>
      <Shortcuts />
      <LiveRegion />
    </div>
  );
}

/** Asks before the key of a link takes the place of the one that this tab has. */
function AnotherKey() {
  const use = (): void => {
    keepKey(offered.value);
    location.reload(); // What was loaded under the other key is gone with the page.
  };
  const keep = (): void => {
    offered.value = "";
  };
  return (
    <main>
      <Dialog title="This link brings another key" onClose={keep}>
        <div class="stack">
          <p>
            This tab is signed in already. With the key of the link you would look into what that
            key opens, which may be somebody else's, and whatever you write would go there.
          </p>
          <div class="buttons">
            <button type="button" class="primary" onClick={keep}>
              Keep my key
            </button>
            <button type="button" onClick={use}>
              Use the link's key
            </button>
          </div>
        </div>
      </Dialog>
    </main>
  );
}

/** Loads a page's code, and shows it; or says why the key may not see it. */
function Loader({ page, rest }: { page: Page } & PageProps) {
  const why = page.needs && whyNot(page.needs);
  if (!why) return <Loaded page={page} rest={rest} />;
  return (
    <>
      <Arrived title={page.title} />
      <PageHeader title={page.title} />
      <Empty title="This page is not for this key.">
        <p>{why}</p>
      </Empty>
    </>
  );
}

function Loaded({ page, rest }: { page: Page } & PageProps) {
  const [loaded, setLoaded] = useState<ComponentType<PageProps>>();
  const [failed, setFailed] = useState<unknown>();
  useEffect(() => {
    page.load().then((module) => setLoaded(() => module.default), setFailed);
  }, [page]);
  if (failed) return <Broken error={failed} again={() => location.reload()} />;
  const Shown = loaded;
  return Shown ? (
    <Guard key={path.value}>
      <Arrived title={page.title} />
      <Shown rest={rest} />
    </Guard>
  ) : (
    <Loading lines={8} />
  );
}

/** Keeps an error of one page from taking the frame along. */
function Guard({ children }: { children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary();
  return error ? <Broken error={error} again={reset} /> : children;
}

function Broken({ error, again }: { error: unknown; again: () => void }) {
  return (
    <>
      <PageHeader title="This page broke" />
      <ErrorBox error={asApiError(error)} retry={again} />
    </>
  );
}

/** Names the window, and brings the focus to the heading when a link led here. */
function Arrived({ title }: { title: string }) {
  const seen = useRef(arrivals.value === 0);
  useEffect(() => {
    document.title = `${title} · Mneme`;
    if (!seen.current) {
      scrollTo(0, 0);
      // A heading that is still to be loaded cannot be entered; the page it stands on can.
      const place = document.querySelector<HTMLElement>("main h1, main:not(:has(h1))");
      place?.focus({ preventScroll: true });
    }
    seen.current = false;
  }, [title]);
  return null;
}

function NotFound() {
  return (
    <>
      <PageHeader title="There is no such page" />
      <Empty title="The address leads nowhere.">
        <p>
          It may come from another version of Mneme. <a href="/">Go to the overview</a>, or{" "}
          <a href="/search">search for what you were looking for</a>.
        </p>
      </Empty>
    </>
  );
}
