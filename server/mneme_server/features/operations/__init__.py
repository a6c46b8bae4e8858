"""Operations: work that outlasts a call, kept until a week after its end."""
