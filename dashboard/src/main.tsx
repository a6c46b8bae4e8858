import { render } from "preact";
import { followKey, takeKey } from "./api/key";
import { App } from "./app";
import { showControls } from "./components/shown";
import { startRouter } from "./router";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/components.css";

const place = document.getElementById("app");
if (place) {
  showControls();
  takeKey();
  // What was loaded under another key is gone with the page.
  followKey(() => location.reload());
  startRouter();
  render(<App />, place);
}
