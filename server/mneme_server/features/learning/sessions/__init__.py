"""Learning sessions: started, told experience, asked for actions, trained, measured."""
